//! Traces: whoever works for an execution is told which trace it is part of.

use crate::crew::Crew;
use crate::fixture::{EngineFixture, TRACE};
use crate::graphs::{chain, node, task};
use crate::local_server::LocalServer;
use serde_json::json;

/// A task's job and a call have the trace of the request.
pub async fn tasks_and_calls_are_part_of_the_requests(g: EngineFixture) {
    let server = LocalServer::start().await;
    let crew = Crew::at_work(&g);
    let call = json!({"id": "call", "type": "http", "url": server.url("/trace")});
    let graph = chain(vec![task(&g.queue, "task", "trace"), node(call)]);
    let start = g.start(graph, json!({})).await;
    g.completed(&start).await;
    assert_eq!(g.output(&start, "task").await, json!(TRACE));
    assert_eq!(g.output(&start, "call").await["body"], json!(TRACE));
    crew.leave().await;
}

/// What the graph says is sent, is sent.
pub async fn a_call_with_a_header_of_its_own_keeps_it(g: EngineFixture) {
    let server = LocalServer::start().await;
    let own = "00-11111111111111111111111111111111-2222222222222222-01";
    let call = json!({"id": "call", "type": "http", "url": server.url("/trace"), "headers": {"Traceparent": own}});
    let start = g.start(chain(vec![node(call)]), json!({})).await;
    g.completed(&start).await;
    assert_eq!(g.output(&start, "call").await["body"], json!(own));
}
