//! Cancelling and terminating an execution: before it is claimed, while it runs, and after its end.

use crate::fixture::EngineFixture;
use crate::graphs::{chain, delay, task};
use crate::task_workers::TaskWorkers;
use leasehold_core::ExecutionEnd;
use leasehold_core::graph::{Graph, NodeState};
use leasehold_engine::{Start, StopAck};
use serde_json::json;

/// A chain of two nodes, the first of which ends only when it is released.
fn held_graph(g: &EngineFixture) -> Graph {
    chain(vec![
        task(&g.queue, "first", "hold"),
        task(&g.queue, "second", "echo"),
    ])
}

async fn cancel_and_check(g: &EngineFixture, start: &Start) {
    let ack = g.engine.cancel(start.execution, "not wanted").await;
    assert_eq!(ack, Ok(StopAck::Acknowledged));
    let (end, error) = g.wait_ended(start).await;
    assert_eq!(end, ExecutionEnd::Cancelled, "{error:?}");
    assert!(error.is_some(), "the error is set");
    let nothing_done = [NodeState::Cancelled, NodeState::Cancelled];
    assert_eq!(g.states(start).await, nothing_done);
}

/// Cancels an execution of which no job is claimed.
pub async fn cancel_before_a_worker_claims_it(g: EngineFixture) {
    let start = g.start(held_graph(&g), json!({})).await;
    g.wait_queued().await;
    cancel_and_check(&g, &start).await;
}

/// Cancels an execution while a worker runs a node.
pub async fn cancel_while_a_worker_runs_a_node(g: EngineFixture) {
    let workers = TaskWorkers::start(&g);
    let start = g.start(held_graph(&g), json!({})).await;
    workers.wait_started("first", g.timeout).await;
    cancel_and_check(&g, &start).await;
    workers.release_held();
    assert_eq!(workers.attempts("second"), 0);
}

/// Cancels an execution during a delay.
pub async fn cancel_during_a_delay(g: EngineFixture) {
    let graph = chain(vec![
        delay("pause", 3_600_000),
        task(&g.queue, "second", "echo"),
    ]);
    let start = g.start(graph, json!({})).await;
    g.wait_for_state(&start, "pause", NodeState::Running).await;
    cancel_and_check(&g, &start).await;
}

/// Cancelling and terminating an ended execution changes nothing.
pub async fn cancel_after_the_end_changes_nothing(g: EngineFixture) {
    let workers = TaskWorkers::start(&g);
    let graph = chain(vec![task(&g.queue, "only", "echo")]);
    let start = g.start(graph, json!({})).await;
    g.expect_completed(&start).await;
    let ack = g.engine.cancel(start.execution, "too late").await;
    assert_eq!(ack, Ok(StopAck::Acknowledged));
    let ack = g.engine.terminate(start.execution, "too late").await;
    assert_eq!(ack, Ok(StopAck::Acknowledged));
    g.expect_completed(&start).await;
    assert_eq!(g.states(&start).await, [NodeState::Completed]);
    workers.stop().await;
}

/// A repeated cancel has the same outcome.
pub async fn repeated_cancel_has_the_same_outcome(g: EngineFixture) {
    let start = g.start(held_graph(&g), json!({})).await;
    g.wait_queued().await;
    cancel_and_check(&g, &start).await;
    cancel_and_check(&g, &start).await;
}

/// A termination ends the execution at once.
pub async fn terminate_ends_the_execution(g: EngineFixture) {
    let workers = TaskWorkers::start(&g);
    let start = g.start(held_graph(&g), json!({})).await;
    workers.wait_started("first", g.timeout).await;
    let ack = g.engine.terminate(start.execution, "enough of it").await;
    assert_eq!(ack, Ok(StopAck::Acknowledged));
    let (end, error) = g.wait_ended(&start).await;
    assert_eq!(end, ExecutionEnd::Terminated);
    let error = error.unwrap_or_default();
    assert!(error.contains("enough of it"), "{error}");
    let nothing_done = [NodeState::Cancelled, NodeState::Cancelled];
    assert_eq!(g.states(&start).await, nothing_done);
    workers.release_held();
    assert_eq!(workers.attempts("second"), 0);
}
