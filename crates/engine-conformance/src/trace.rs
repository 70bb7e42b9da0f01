//! Trace context: jobs and calls of an execution carry the trace of its request.

use crate::fixture::{EngineFixture, TRACE};
use crate::graphs::{chain, node, task};
use crate::local_server::LocalServer;
use crate::task_workers::TaskWorkers;
use serde_json::json;

/// The job of a task and an http call carry the trace of the request.
pub async fn tasks_and_calls_carry_the_trace_of_the_request(g: EngineFixture) {
    let server = LocalServer::start().await;
    let workers = TaskWorkers::start(&g);
    let call = json!({"id": "call", "type": "http", "url": server.url("/trace")});
    let graph = chain(vec![task(&g.queue, "task", "trace"), node(call)]);
    let start = g.start(graph, json!({})).await;
    g.expect_completed(&start).await;
    assert_eq!(g.output(&start, "task").await, json!(TRACE));
    assert_eq!(g.output(&start, "call").await["body"], json!(TRACE));
    workers.stop().await;
}

/// A `traceparent` header in the graph is sent unchanged.
pub async fn traceparent_header_of_the_graph_is_kept(g: EngineFixture) {
    let server = LocalServer::start().await;
    let own = "00-11111111111111111111111111111111-2222222222222222-01";
    let call = json!({"id": "call", "type": "http", "url": server.url("/trace"), "headers": {"Traceparent": own}});
    let start = g.start(chain(vec![node(call)]), json!({})).await;
    g.expect_completed(&start).await;
    assert_eq!(g.output(&start, "call").await["body"], json!(own));
}
