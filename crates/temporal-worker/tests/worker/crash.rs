//! Kills the worker and Temporal during many executions and restarts them: all executions complete, and no job runs twice.

use crate::WAIT_TIMEOUT;
use crate::program::{field, spawn, wait_for_text};
use leasehold_client::api::definition::{NewDefinition, NewVersion};
use leasehold_client::api::key::{NewKey, Scope};
use leasehold_client::api::request::{NewRequest, NewRequests};
use leasehold_client::api::workspace::{NewWorkspace, WorkspaceState};
use leasehold_client::{Client, HttpSource};
use leasehold_core::{JobStatus, Plan, VersionBody, WorkspaceId};
use leasehold_engine_conformance::LocalServer;
use leasehold_testkit::{DevServerOptions, Process, TestTemporal, eventually, temp_dir};
use leasehold_worker::{JobContext, Worker, WorkerHandle};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;

const EXECUTIONS: usize = 60;
const QUEUE: &str = "crash";

/// How often each job ran.
type RunCounts = Arc<Mutex<HashMap<String, u32>>>;

fn blocking<T>(work: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(work)
}

/// A call, then a task in parallel to a delay, then a task after both.
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

/// Starts the server; returns it with a client that has its administrator key.
fn serve(directory: &Path, temporal: &str) -> (Process, Client, String) {
    let arguments = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--engine",
        "temporal",
        "--temporal-address",
        temporal,
    ];
    let process = spawn(directory, &arguments, &[]);
    let line = wait_for_text(&process, "leasehold is running");
    let url = format!("http://{}", field(&line, "listens"));
    let key = std::fs::read_to_string(directory.join("leasehold-data/admin.key")).unwrap();
    let client = Client::new(&url, key.trim()).unwrap();
    (process, client, url)
}

fn work(directory: &Path, temporal: &str, url: &str, key: &str) -> Process {
    let arguments = ["worker", "--temporal-address", temporal, "--server", url];
    let variables = [
        ("LEASEHOLD_KEY", key),
        ("LEASEHOLD__HTTP_NODES__ALLOW", "127.0.0.1"),
    ];
    spawn(directory, &arguments, &variables)
}

/// Starts the worker of the task queue, which keeps running. The last task of an execution waits for a permit.
fn start_worker(client: Client, runs: RunCounts, permits: Arc<Semaphore>) -> WorkerHandle {
    let worker = Worker::builder(Arc::new(HttpSource::new(client))).queue(QUEUE);
    let worker = worker.handler("work", move |task: Value, _: JobContext| {
        let (runs, permits) = (runs.clone(), permits.clone());
        async move {
            let id = format!("{}/{}", task["execution_id"], task["node_id"]);
            *runs.lock().unwrap().entry(id).or_default() += 1;
            if task["node_id"] == "last" {
                permits.acquire().await?.forget();
            }
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
    let seen = eventually(WAIT_TIMEOUT, async || {
        let state = client.workspace_get(workspace).await;
        state.is_ok_and(|state| is_so(&state))
    });
    let seen = seen.await;
    let state = client.workspace_get(workspace).await;
    assert!(seen, "not {what}: {state:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_worker_and_temporal_lose_and_repeat_no_job() {
    let directory = temp_dir();
    let mut temporal =
        blocking(|| TestTemporal::start(DevServerOptions::default().on_file())).unwrap();
    let address = temporal.address().to_owned();
    let (mut server, client, url) = serve(directory.path(), &address);
    let key = NewKey::full(
        "graphs",
        Scope::Worker {
            queues: vec![QUEUE.to_owned()],
        },
    );
    let key = client.key_create(&key).await.unwrap().secret;
    let runs = RunCounts::default();
    // Not all executions can end before the kill, however late it comes.
    let permits = Arc::new(Semaphore::new(EXECUTIONS / 3));
    let task_client = Client::new(&url, &key).unwrap();
    let task_worker = start_worker(task_client, runs.clone(), permits.clone());
    let called = LocalServer::start().await;
    let mut worker = work(directory.path(), &address, &url, &key);
    let workspace = enqueue(&client, &called.url("/echo")).await;

    until(&client, workspace, "started", |state| {
        state.requests.completed >= 5
    })
    .await;
    blocking(|| worker.kill());
    blocking(|| temporal.kill()).unwrap();
    let before = client.workspace_get(workspace).await.unwrap();
    assert!(
        before.requests.completed < EXECUTIONS as u64,
        "all completed before the kill"
    );
    permits.add_permits(EXECUTIONS);
    blocking(|| temporal.start_again()).unwrap();
    let mut worker = work(directory.path(), &address, &url, &key);
    until(&client, workspace, "done", |state| {
        state.requests.completed + state.requests.failed == EXECUTIONS as u64
            && state.slots.in_use == 0
    })
    .await;

    let end = client.workspace_get(workspace).await.unwrap();
    assert_eq!(end.requests.completed, EXECUTIONS as u64, "{end:?}");
    let runs = runs.lock().unwrap().clone();
    assert_eq!(runs.len(), 2 * EXECUTIONS);
    assert!(runs.values().all(|times| *times == 1), "{runs:?}");
    let jobs = client.job_list(QUEUE, None).all().await.unwrap();
    assert_eq!(jobs.len(), 2 * EXECUTIONS);
    assert!(jobs.iter().all(|job| job.status == JobStatus::Completed));
    task_worker.stop().await;
    for process in [&mut worker, &mut server] {
        process.terminate();
        let status = blocking(|| process.wait(WAIT_TIMEOUT));
        assert!(status.success(), "{}", process.log());
    }
}
