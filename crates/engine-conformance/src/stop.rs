//! Telling an execution to end: before anybody works on it, meanwhile, and when it has ended.

use crate::crew::Crew;
use crate::fixture::EngineFixture;
use crate::graphs::{chain, delay, task};
use leasehold_core::ExecutionEnd;
use leasehold_core::graph::{Graph, NodeState};
use leasehold_engine::{Start, Told};
use serde_json::json;

/// Two nodes, the first of which ends only when it is let go.
fn held(g: &EngineFixture) -> Graph {
    chain(vec![
        task(&g.queue, "first", "hold"),
        task(&g.queue, "second", "echo"),
    ])
}

async fn cancelled(g: &EngineFixture, start: &Start) {
    let told = g.engine.cancel(start.execution, "not wanted").await;
    assert_eq!(told, Ok(Told::Told));
    let (end, error) = g.ended(start).await;
    assert_eq!(end, ExecutionEnd::Cancelled, "{error:?}");
    assert!(error.is_some(), "it says why");
    let nothing_done = [NodeState::Cancelled, NodeState::Cancelled];
    assert_eq!(g.states(start).await, nothing_done);
}

/// Nobody has claimed anything of it.
pub async fn a_cancellation_before_anybody_works_on_it(g: EngineFixture) {
    let start = g.start(held(&g), json!({})).await;
    g.queued().await;
    cancelled(&g, &start).await;
}

/// Somebody is at work on a node.
pub async fn a_cancellation_while_somebody_works_on_it(g: EngineFixture) {
    let crew = Crew::at_work(&g);
    let start = g.start(held(&g), json!({})).await;
    crew.until_begun("first", g.patience).await;
    cancelled(&g, &start).await;
    crew.let_go();
    assert_eq!(crew.begun("second"), 0);
}

/// A pause is no obstacle.
pub async fn a_cancellation_in_a_pause(g: EngineFixture) {
    let graph = chain(vec![
        delay("pause", 3_600_000),
        task(&g.queue, "second", "echo"),
    ]);
    let start = g.start(graph, json!({})).await;
    g.in_state(&start, "pause", NodeState::Running).await;
    cancelled(&g, &start).await;
}

/// What has ended stays as it ended.
pub async fn a_cancellation_after_the_end_changes_nothing(g: EngineFixture) {
    let crew = Crew::at_work(&g);
    let graph = chain(vec![task(&g.queue, "only", "echo")]);
    let start = g.start(graph, json!({})).await;
    g.completed(&start).await;
    let told = g.engine.cancel(start.execution, "too late").await;
    assert_eq!(told, Ok(Told::Told));
    let told = g.engine.terminate(start.execution, "too late").await;
    assert_eq!(told, Ok(Told::Told));
    g.completed(&start).await;
    assert_eq!(g.states(&start).await, [NodeState::Completed]);
    crew.leave().await;
}

/// A second one finds the first.
pub async fn a_repeated_cancellation_is_the_same(g: EngineFixture) {
    let start = g.start(held(&g), json!({})).await;
    g.queued().await;
    cancelled(&g, &start).await;
    cancelled(&g, &start).await;
}

/// Ending it without asking ends it at once.
pub async fn a_termination_ends_it(g: EngineFixture) {
    let crew = Crew::at_work(&g);
    let start = g.start(held(&g), json!({})).await;
    crew.until_begun("first", g.patience).await;
    let told = g.engine.terminate(start.execution, "enough of it").await;
    assert_eq!(told, Ok(Told::Told));
    let (end, error) = g.ended(&start).await;
    assert_eq!(end, ExecutionEnd::Terminated);
    let error = error.unwrap_or_default();
    assert!(error.contains("enough of it"), "{error}");
    let nothing_done = [NodeState::Cancelled, NodeState::Cancelled];
    assert_eq!(g.states(&start).await, nothing_done);
    crew.let_go();
    assert_eq!(crew.begun("second"), 0);
}
