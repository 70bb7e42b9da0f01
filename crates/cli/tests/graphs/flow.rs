//! A graph of ten nodes of every type, and its executions. Knows no process.

use leasehold_client::Client;
use leasehold_client::api::definition::{NewDefinition, NewVersion};
use leasehold_client::api::key::{NewKey, Scope};
use leasehold_client::api::request::{NewRequest, NewRequests};
use leasehold_client::api::workspace::NewWorkspace;
use leasehold_core::{Plan, VersionBody, WorkspaceId};
use leasehold_engine_conformance::LocalServer;
use serde_json::{Value, json};

/// Queue of the tasks.
pub(crate) const QUEUE: &str = "tasks";
/// Number of tasks in the graph.
pub(crate) const TASKS: usize = 5;
/// Number of nodes in the graph.
pub(crate) const NODES: usize = 10;

/// `http`, then two tasks beside a `delay`, a task, `http` beside a `delay`, and two tasks with a `delay` between them.
fn graph(calls: &LocalServer) -> Value {
    let retry = json!({"max_attempts": 1000, "base_ms": 50, "max_ms": 500});
    let task = |id: &str| json!({"id": id, "type": "task", "queue": QUEUE, "kind": "work", "input": id, "retry": retry});
    let delay = |id: &str| json!({"id": id, "type": "delay", "milliseconds": 20});
    let call = |id: &str| {
        let url = calls.url(&format!("/echo/{id}"));
        json!({"id": id, "type": "http", "method": "POST", "url": url, "input": id, "retry": retry})
    };
    let edges = [
        "a>b", "a>c", "a>d", "b>e", "c>e", "d>e", "e>f", "e>g", "f>h", "g>h", "h>i", "i>j",
    ];
    let edge = |pair: &str| json!({"from": pair[..1], "to": pair[2..]});
    json!({
        "nodes": [
            call("a"), task("b"), task("c"), delay("d"), task("e"),
            call("f"), delay("g"), task("h"), delay("i"), task("j"),
        ],
        "edges": edges.map(edge),
    })
}

/// Enqueues `count` executions in a workspace without an effective limit.
pub(crate) async fn enqueue(client: &Client, calls: &LocalServer, count: usize) -> WorkspaceId {
    let new = NewWorkspace {
        name: "crash".to_owned(),
        plan: Plan::Pro,
        max_concurrent_executions: Some(10_000),
    };
    let workspace = client.workspace_create(&new).await.unwrap().id;
    let new = NewDefinition {
        name: "flow".to_owned(),
    };
    let definition = client.definition_create(workspace, &new).await.unwrap().id;
    let new = NewVersion {
        body: VersionBody::Graph(serde_json::from_value(graph(calls)).unwrap()),
        params_schema: None,
        execution_timeout_ms: None,
    };
    let version = client.version_publish(workspace, definition, &new).await;
    version.unwrap();
    let request = |number: usize| NewRequest::new(definition, json!({"number": number}));
    let requests = (0..count).map(request).collect();
    let enqueued = client
        .request_enqueue_many(workspace, &NewRequests { requests })
        .await;
    assert_eq!(enqueued.unwrap().len(), count);
    workspace
}

/// Creates a worker key for the queue.
pub(crate) async fn worker_key(client: &Client) -> String {
    let new = NewKey::full(
        "worker",
        Scope::Worker {
            queues: vec![QUEUE.to_owned()],
        },
    );
    client.key_create(&new).await.unwrap().secret
}
