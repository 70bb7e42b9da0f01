//! `http` nodes: what is sent, what comes of it, and which failures are worth another try.

use crate::fixture::EngineFixture;
use crate::graphs::{chain, node};
use crate::local_server::LocalServer;
use leasehold_core::ExecutionEnd;
use leasehold_core::graph::{Node, NodeState};
use leasehold_engine::Start;
use serde_json::{Value, json};

fn http(url: &str, more: Value) -> Node {
    let mut document = json!({"id": "call", "type": "http", "url": url,
        "retry": {"max_attempts": 4, "base_ms": 10, "jitter": 0.0}});
    if let (Value::Object(fields), Value::Object(more)) = (&mut document, more) {
        fields.extend(more);
    }
    node(document)
}

async fn failed_at(g: &EngineFixture, start: &Start, attempts: u32) -> String {
    let (end, error) = g.ended(start).await;
    assert_eq!(end, ExecutionEnd::Failed);
    let node = g.node(start, "call").await;
    assert_eq!((node.state, node.attempts), (NodeState::Failed, attempts));
    let error = error.unwrap_or_default();
    assert!(error.starts_with("node `call` failed: "), "{error}");
    error
}

/// The address is filled in, the input is the body, and the answer is the output.
pub async fn sends_its_input_and_comes_to_the_answer(g: EngineFixture) {
    let server = LocalServer::start().await;
    let url = server.url("/echo/{/params/id}");
    let post = http(
        &url,
        json!({"method": "POST", "input": {"id": {"$from": "/params/id"}}}),
    );
    let mut get = http("x", json!({"url": server.url("/echo/plain")}));
    get.id = "get".to_owned();
    let start = g.start(chain(vec![post, get]), json!({"id": "a b"})).await;
    g.completed(&start).await;
    let output = g.output(&start, "call").await;
    assert_eq!(output["status"], 200);
    let sent = json!({"method": "POST", "path": "/echo/a%20b", "body": {"id": "a b"}});
    assert_eq!(output["body"], sent);
    let sent = json!({"method": "GET", "path": "/echo/plain", "body": null});
    assert_eq!(g.output(&start, "get").await["body"], sent);
    assert_eq!(g.node(&start, "call").await.attempts, 1);
}

/// What was asked for wrongly is not asked for again.
pub async fn a_404_is_for_good(g: EngineFixture) {
    let server = LocalServer::start().await;
    let call = http(&server.url("/status/404"), json!({}));
    let start = g.start(chain(vec![call]), json!({})).await;
    let error = failed_at(&g, &start, 1).await;
    assert!(error.contains("404"), "{error}");
    assert_eq!(server.calls("/status/404"), 1);
}

/// The server's own trouble may pass.
pub async fn a_503_is_tried_again(g: EngineFixture) {
    let server = LocalServer::start().await;
    let call = http(&server.url("/flaky/here/2"), json!({}));
    let start = g.start(chain(vec![call]), json!({})).await;
    g.completed(&start).await;
    let node = g.node(&start, "call").await;
    assert_eq!(node.attempts, 3);
    assert_eq!(g.output(&start, "call").await["body"], json!({"call": 3}));
}

/// Or not.
pub async fn a_503_that_stays_fails_after_the_last_attempt(g: EngineFixture) {
    let server = LocalServer::start().await;
    let call = http(&server.url("/status/503"), json!({}));
    let start = g.start(chain(vec![call]), json!({})).await;
    let error = failed_at(&g, &start, 4).await;
    assert!(error.contains("503"), "{error}");
    assert_eq!(server.calls("/status/503"), 4);
}

/// Whoever is called says when to come again, whatever the policy says.
pub async fn a_retry_after_is_obeyed(g: EngineFixture) {
    let server = LocalServer::start().await;
    let far = json!({"retry": {"max_attempts": 2, "base_ms": 3_600_000, "max_ms": 3_600_000}});
    let call = http(&server.url("/busy/here"), far);
    let start = g.start(chain(vec![call]), json!({})).await;
    g.completed(&start).await;
    assert_eq!(g.node(&start, "call").await.attempts, 2);
}

/// A call that brings no answer is cut off.
pub async fn a_call_that_hangs_is_cut_off(g: EngineFixture) {
    let server = LocalServer::start().await;
    let short = json!({"timeout_ms": 300, "retry": {"max_attempts": 2, "base_ms": 10}});
    let call = http(&server.url("/hang"), short);
    let start = g.start(chain(vec![call]), json!({})).await;
    failed_at(&g, &start, 2).await;
    assert_eq!(server.calls("/hang"), 2);
}
