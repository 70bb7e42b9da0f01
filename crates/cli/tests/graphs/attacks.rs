//! Graphs that would make the server compute or write far more than they have: they fail alone, and another tenant's graph completes
//! meanwhile.

use crate::server::Server;
use crate::{TIMEOUT, flow};
use futures::FutureExt;
use leasehold_client::Client;
use leasehold_client::api::definition::{NewDefinition, NewVersion};
use leasehold_client::api::request::NewRequest;
use leasehold_client::api::workspace::NewWorkspace;
use leasehold_core::limits::NODE_MAX_POINTERS;
use leasehold_core::{DefinitionId, Plan, VersionBody, WorkspaceId};
use leasehold_engine_conformance::LocalServer;
use leasehold_testkit::{TestPostgres, eventually, temp_dir};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::time::interval;

/// With a debug build; a release build takes half.
const MEMORY_MAX: u64 = 512 * 1024 * 1024;
/// One such request once wrote 38 MiB.
const REQUEST_MAX_BYTES: u64 = 4 * 1024 * 1024;

/// The longest call of the other tenant. Other tests run on this machine meanwhile; the tests in `load` run alone and allow two seconds.
const CALL_MAX: Duration = Duration::from_secs(5);

struct Tenant {
    workspace: WorkspaceId,
    definition: DefinitionId,
}

async fn tenant(client: &Client, name: &str) -> Tenant {
    let new = NewWorkspace {
        name: name.to_owned(),
        plan: Plan::Pro,
        max_concurrent_executions: Some(100),
    };
    let workspace = client.workspace_create(&new).await.unwrap().id;
    let new = NewDefinition {
        name: "flow".to_owned(),
    };
    let definition = client.definition_create(workspace, &new).await.unwrap().id;
    Tenant {
        workspace,
        definition,
    }
}

impl Tenant {
    async fn publish(&self, client: &Client, graph: Value) -> Result<(), String> {
        let new = NewVersion {
            body: VersionBody::Graph(serde_json::from_value(graph).unwrap()),
            params_schema: None,
            execution_timeout_ms: None,
        };
        let version = client.version_publish(self.workspace, self.definition, &new);
        version
            .await
            .map(drop)
            .map_err(|error| format!("{error:?}"))
    }

    async fn enqueue(&self, client: &Client, params: &Value, count: usize) {
        for _ in 0..count {
            let new = NewRequest::new(self.definition, params.clone());
            client.request_enqueue(self.workspace, &new).await.unwrap();
        }
    }

    /// Waits until this many requests have completed and failed.
    async fn until_ended(&self, client: &Client, completed: u64, failed: u64) {
        let done = eventually(TIMEOUT, async || {
            let state = client.workspace_get(self.workspace).await;
            state.is_ok_and(|state| {
                (state.requests.completed, state.requests.failed) == (completed, failed)
            })
        });
        let state = client.workspace_get(self.workspace).await;
        assert!(done.await, "not all have ended: {state:?}");
    }
}

/// Runs an attack while another tenant enqueues and reads all the while, and asserts that its calls stay short. Returns the longest one.
async fn beside_another_tenant(client: &Client, attack: impl Future<Output = ()>) -> Duration {
    const REQUESTS: usize = 20;
    let other = tenant(client, "other").await;
    let delay = |id: &str| json!({"id": id, "type": "delay", "milliseconds": 1});
    let graph = json!({"nodes": [delay("a"), delay("b")], "edges": [{"from": "a", "to": "b"}]});
    other.publish(client, graph).await.unwrap();
    let attack = attack.shared();
    let calls = async {
        let (mut longest, mut requests) = (Duration::ZERO, 0);
        let mut pace = interval(Duration::from_millis(50));
        while requests < REQUESTS || attack.peek().is_none() {
            pace.tick().await;
            let begun = Instant::now();
            other.enqueue(client, &json!(requests), 1).await;
            longest = longest.max(begun.elapsed());
            let begun = Instant::now();
            client.workspace_get(other.workspace).await.unwrap();
            longest = longest.max(begun.elapsed());
            requests += 1;
        }
        other.until_ended(client, requests as u64, 0).await;
        longest
    };
    let (longest, ()) = futures::join!(calls, attack.clone());
    assert!(
        longest <= CALL_MAX,
        "a call of the other tenant took {longest:?}"
    );
    longest
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn template_that_multiplies_params_fails_its_execution_alone() {
    let dir = temp_dir();
    let url = format!("sqlite:{}", dir.path().join("leasehold.db").display());
    let mut server = Server::new(&url);
    server.start(None);
    let client = server.admin();
    let attacker = tenant(&client, "attacker").await;
    let call = |id: usize, pointers: usize| {
        let url = "https://example.com/".to_owned() + &"{/params}".repeat(pointers);
        json!({"id": format!("n{id}"), "type": "http", "url": url})
    };
    let refused = json!({"nodes": [call(0, 900)]});
    let refused = attacker.publish(&client, refused).await.unwrap_err();
    assert!(refused.contains("pointer"), "{refused}");
    let nodes: Vec<Value> = (0..6).map(|id| call(id, NODE_MAX_POINTERS)).collect();
    attacker
        .publish(&client, json!({"nodes": nodes}))
        .await
        .unwrap();
    let params = json!("\u{e4}".repeat(120_000));
    let longest = beside_another_tenant(&client, async {
        attacker.enqueue(&client, &params, 5).await;
        attacker.until_ended(&client, 0, 5).await;
    })
    .await;
    let memory = server.peak_memory();
    println!(
        "peak memory {} MiB, longest call of the other tenant {longest:?}",
        memory / 1024 / 1024
    );
    assert!(memory < MEMORY_MAX, "{memory}");
    server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wide_graph_with_large_params_writes_little_on_sqlite() {
    let dir = temp_dir();
    let url = format!("sqlite:{}", dir.path().join("leasehold.db").display());
    let bytes = async || directory_bytes(dir.path());
    run_wide_graph(&url, bytes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wide_graph_with_large_params_writes_little_on_postgres() {
    let database = TestPostgres::shared().fresh_database(None).await;
    let (postgres, connection) =
        tokio_postgres::connect(&database.url_in("leasehold"), tokio_postgres::NoTls)
            .await
            .unwrap();
    tokio::spawn(connection);
    let bytes = async || {
        let statement = include_str!("sql/database_bytes.sql");
        let row = postgres.query_one(statement, &[]).await.unwrap();
        row.get::<_, i64>(0).unsigned_abs()
    };
    run_wide_graph(database.url(), bytes).await;
}

fn directory_bytes(path: &Path) -> u64 {
    let files = std::fs::read_dir(path).unwrap();
    files
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum()
}

/// 999 tasks that get all params, beside a call that is refused.
async fn run_wide_graph(store: &str, bytes: impl AsyncFn() -> u64) {
    const REQUESTS: usize = 5;
    let calls = LocalServer::start().await;
    let mut server = Server::new(store);
    server.start(None);
    let client = server.admin();
    let attacker = tenant(&client, "attacker").await;
    let task = |id: usize| json!({"id": id.to_string(), "type": "task", "queue": flow::QUEUE});
    let mut nodes = vec![json!({"id": "call", "type": "http", "url": calls.url("/status/404")})];
    nodes.extend((0..999).map(task));
    attacker
        .publish(&client, json!({"nodes": nodes}))
        .await
        .unwrap();
    let params = json!("x".repeat(31 * 1024));
    let before = bytes().await;
    let longest = beside_another_tenant(&client, async {
        attacker.enqueue(&client, &params, REQUESTS).await;
        attacker.until_ended(&client, 0, REQUESTS as u64).await;
    })
    .await;
    let written = bytes().await.saturating_sub(before);
    println!(
        "{REQUESTS} requests wrote {} KiB, longest call of the other tenant {longest:?}",
        written / 1024
    );
    assert!(written < REQUESTS as u64 * REQUEST_MAX_BYTES, "{written}");
    server.stop();
}
