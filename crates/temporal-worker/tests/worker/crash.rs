//! Worker and Temporal are killed in the middle of many executions, and started again: all end as if nothing had been.

use crate::PATIENCE;
use crate::program::{field, says, spawn};
use leasehold_client::api::definition::{NewDefinition, NewVersion};
use leasehold_client::api::key::{NewKey, Scope};
use leasehold_client::api::request::{NewRequest, NewRequests};
use leasehold_client::api::workspace::{NewWorkspace, WorkspaceState};
use leasehold_client::{Client, HttpSource};
use leasehold_core::{JobStatus, Plan, VersionBody, WorkspaceId};
use leasehold_engine_conformance::LocalServer;
use leasehold_testkit::{Process, TemporalOptions, TestTemporal, eventually, temp_dir};
use leasehold_worker::{JobContext, Worker, WorkerHandle};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

const EXECUTIONS: usize = 60;
const QUEUE: &str = "crash";

/// How often each job was worked on.
type Worked = Arc<Mutex<HashMap<String, u32>>>;

fn blocking<T>(work: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(work)
}

/// A call, a task beside a pause, and a task behind both.
fn graph(url: &str) -> VersionBody {
    let retry = json!({"max_attempts": 5, "base_ms": 100});
    let document = json!({
        "nodes": [
            {"id": "call", "type": "http", "url": url, "retry": retry},
            {"id": "pause", "type": "delay", "milliseconds": 300},
            {"id": "beside", "type": "task", "queue": QUEUE, "kind": "work"},
            {"id": "last", "type": "task", "queue": QUEUE, "kind": "work"},
        ],
        "edges": [
            {"from": "call", "to": "pause"}, {"from": "call", "to": "beside"},
            {"from": "pause", "to": "last"}, {"from": "beside", "to": "last"},
        ],
    });
    VersionBody::Graph(serde_json::from_value(document).unwrap())
}

/// The server, and a client with its administrator's key.
fn serve(folder: &Path, temporal: &str) -> (Process, Client, String) {
    let arguments = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--engine",
        "temporal",
        "--temporal-address",
        temporal,
    ];
    let process = spawn(folder, &arguments, &[]);
    let line = says(&process, "leasehold is running");
    let url = format!("http://{}", field(&line, "listens"));
    let key = std::fs::read_to_string(folder.join("leasehold-data/admin.key")).unwrap();
    let client = Client::new(&url, key.trim()).unwrap();
    (process, client, url)
}

fn work(folder: &Path, temporal: &str, url: &str, key: &str) -> Process {
    let arguments = ["worker", "--temporal-address", temporal, "--server", url];
    let variables = [
        ("LEASEHOLD_KEY", key),
        ("LEASEHOLD__HTTP_NODES__ALLOW", "127.0.0.1"),
    ];
    spawn(folder, &arguments, &variables)
}

/// Whoever does the tasks; it outlives all crashes.
fn crew(client: Client, worked: Worked) -> WorkerHandle {
    let worker = Worker::of(Arc::new(HttpSource::new(client))).queue(QUEUE);
    let worker = worker.handler("work", move |task: Value, _: JobContext| {
        let worked = worked.clone();
        async move {
            let id = format!("{}/{}", task["execution_id"], task["node_id"]);
            *worked.lock().unwrap().entry(id).or_default() += 1;
            Ok(json!("done"))
        }
    });
    worker.build().unwrap().start()
}

async fn enqueue(client: &Client, url: &str) -> WorkspaceId {
    let new = NewWorkspace {
        name: "crash".to_owned(),
        plan: Plan::Enterprise,
        max_concurrent_executions: None,
    };
    let workspace = client.workspace_create(&new).await.unwrap().id;
    let new = NewDefinition {
        name: "graph".to_owned(),
    };
    let definition = client.definition_create(workspace, &new).await.unwrap().id;
    let version = NewVersion {
        body: graph(url),
        params_schema: None,
        execution_timeout_ms: None,
    };
    let published = client.version_publish(workspace, definition, &version);
    published.await.unwrap();
    let request: NewRequest = serde_json::from_value(json!({"definition": definition})).unwrap();
    let all = NewRequests {
        requests: vec![request; EXECUTIONS],
    };
    let all = client.request_enqueue_many(workspace, &all).await;
    assert_eq!(all.unwrap().len(), EXECUTIONS);
    workspace
}

async fn until(
    client: &Client,
    workspace: WorkspaceId,
    what: &str,
    is_so: impl Fn(&WorkspaceState) -> bool,
) {
    let seen = eventually(PATIENCE, async || {
        let state = client.workspace_get(workspace).await;
        state.is_ok_and(|state| is_so(&state))
    });
    let seen = seen.await;
    let state = client.workspace_get(workspace).await;
    assert!(seen, "not {what}: {state:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_worker_and_a_killed_temporal_lose_and_double_nothing() {
    let folder = temp_dir();
    let mut temporal =
        blocking(|| TestTemporal::start(TemporalOptions::default().on_file())).unwrap();
    let address = temporal.address().to_owned();
    let (mut server, client, url) = serve(folder.path(), &address);
    let key = NewKey {
        name: "graphs".to_owned(),
        scope: Scope::Worker {
            queues: vec![QUEUE.to_owned()],
        },
    };
    let key = client.key_create(&key).await.unwrap().secret;
    let worked = Worked::default();
    let crew = crew(Client::new(&url, &key).unwrap(), worked.clone());
    let called = LocalServer::start().await;
    let mut worker = work(folder.path(), &address, &url, &key);
    let workspace = enqueue(&client, &called.url("/echo")).await;

    until(&client, workspace, "begun", |state| {
        state.requests.completed >= 5
    })
    .await;
    blocking(|| worker.kill());
    blocking(|| temporal.kill()).unwrap();
    let before = client.workspace_get(workspace).await.unwrap();
    assert!(before.requests.completed < EXECUTIONS as u64, "too late");
    blocking(|| temporal.start_again()).unwrap();
    let mut worker = work(folder.path(), &address, &url, &key);
    until(&client, workspace, "done", |state| {
        state.requests.completed + state.requests.failed == EXECUTIONS as u64
            && state.slots.in_use == 0
    })
    .await;

    let end = client.workspace_get(workspace).await.unwrap();
    assert_eq!(end.requests.completed, EXECUTIONS as u64, "{end:?}");
    let worked = worked.lock().unwrap().clone();
    assert_eq!(worked.len(), 2 * EXECUTIONS);
    assert!(worked.values().all(|times| *times == 1), "{worked:?}");
    let jobs = client.job_list(QUEUE, None).all().await.unwrap();
    assert_eq!(jobs.len(), 2 * EXECUTIONS);
    assert!(jobs.iter().all(|job| job.status == JobStatus::Completed));
    crew.stop().await;
    for process in [&mut worker, &mut server] {
        process.terminate();
        let status = blocking(|| process.wait(PATIENCE));
        assert!(status.success(), "{}", process.log());
    }
}
