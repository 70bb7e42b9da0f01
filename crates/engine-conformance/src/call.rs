//! `http` nodes: request, response, and which failures are retried.

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
    let (end, error) = g.wait_ended(start).await;
    assert_eq!(end, ExecutionEnd::Failed);
    let node = g.node(start, "call").await;
    assert_eq!((node.state, node.attempts), (NodeState::Failed, attempts));
    let error = error.unwrap_or_default();
    assert!(error.starts_with("node `call` failed: "), "{error}");
    error
}

/// The URL template is filled in, the input is the body, and the response is the output.
pub async fn sends_its_input_and_returns_the_response(g: EngineFixture) {
    let server = LocalServer::start().await;
    let url = server.url("/echo/{/params/id}");
    let post = http(
        &url,
        json!({"method": "POST", "input": {"id": {"$from": "/params/id"}}}),
    );
    let mut get = http("x", json!({"url": server.url("/echo/plain")}));
    get.id = "get".to_owned();
    let start = g.start(chain(vec![post, get]), json!({"id": "a b"})).await;
    g.expect_completed(&start).await;
    let output = g.output(&start, "call").await;
    assert_eq!(output["status"], 200);
    let sent = json!({"method": "POST", "path": "/echo/a%20b", "body": {"id": "a b"}});
    assert_eq!(output["body"], sent);
    let sent = json!({"method": "GET", "path": "/echo/plain", "body": null});
    assert_eq!(g.output(&start, "get").await["body"], sent);
    assert_eq!(g.node(&start, "call").await.attempts, 1);
}

/// A 404 is not retried.
pub async fn status_404_is_permanent(g: EngineFixture) {
    let server = LocalServer::start().await;
    let call = http(&server.url("/status/404"), json!({}));
    let start = g.start(chain(vec![call]), json!({})).await;
    let error = failed_at(&g, &start, 1).await;
    assert!(error.contains("404"), "{error}");
    assert_eq!(server.calls("/status/404"), 1);
}

/// A 503 is retried.
pub async fn status_503_is_retried(g: EngineFixture) {
    let server = LocalServer::start().await;
    let call = http(&server.url("/flaky/here/2"), json!({}));
    let start = g.start(chain(vec![call]), json!({})).await;
    g.expect_completed(&start).await;
    let node = g.node(&start, "call").await;
    assert_eq!(node.attempts, 3);
    assert_eq!(g.output(&start, "call").await["body"], json!({"call": 3}));
}

/// A persistent 503 fails after the last attempt.
pub async fn persistent_503_fails_after_the_last_attempt(g: EngineFixture) {
    let server = LocalServer::start().await;
    let call = http(&server.url("/status/503"), json!({}));
    let start = g.start(chain(vec![call]), json!({})).await;
    let error = failed_at(&g, &start, 4).await;
    assert!(error.contains("503"), "{error}");
    assert_eq!(server.calls("/status/503"), 4);
}

/// The `Retry-After` header of the response overrides the backoff of the policy.
pub async fn retry_after_header_is_honoured(g: EngineFixture) {
    let server = LocalServer::start().await;
    let far = json!({"retry": {"max_attempts": 2, "base_ms": 3_600_000, "max_ms": 3_600_000}});
    let call = http(&server.url("/busy/here"), far);
    let start = g.start(chain(vec![call]), json!({})).await;
    g.expect_completed(&start).await;
    assert_eq!(g.node(&start, "call").await.attempts, 2);
}

/// A call without a response times out.
pub async fn hanging_call_times_out(g: EngineFixture) {
    let server = LocalServer::start().await;
    let short = json!({"timeout_ms": 3_000, "retry": {"max_attempts": 2, "base_ms": 10}});
    let call = http(&server.url("/hang"), short);
    let start = g.start(chain(vec![call]), json!({})).await;
    failed_at(&g, &start, 2).await;
    assert_eq!(server.calls("/hang"), 2);
}
