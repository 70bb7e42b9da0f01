//! Attempts: what fails is tried again as its policy says, what takes too long is cut off, what a dead worker had is done by another.

use crate::crew::Crew;
use crate::fixture::EngineFixture;
use crate::graphs::{chain, node, task, task_of};
use leasehold_core::ExecutionEnd;
use leasehold_core::graph::NodeState;
use leasehold_core::job::JobClaim;
use serde_json::json;
use std::time::Duration;

/// It fails twice and is done at the third attempt.
pub async fn what_fails_is_tried_again(g: EngineFixture) {
    let crew = Crew::at_work(&g);
    let flaky = task_of(&g.queue, "flaky", "flaky", json!({"times": 2}));
    let start = g.start(chain(vec![flaky]), json!({})).await;
    g.completed(&start).await;
    let node = g.node(&start, "flaky").await;
    assert_eq!((node.state, node.attempts), (NodeState::Completed, 3));
    assert_eq!(g.output(&start, "flaky").await, json!({"attempt": 3}));
    assert_eq!(crew.begun("flaky"), 3);
}

/// After its last attempt it has failed, and so has the execution.
pub async fn the_last_attempt_is_the_last(g: EngineFixture) {
    let crew = Crew::at_work(&g);
    let flaky = task_of(&g.queue, "flaky", "flaky", json!({"times": 99}));
    let start = g.start(chain(vec![flaky]), json!({})).await;
    g.failed(&start, "node `flaky` failed: attempt 5 fails")
        .await;
    let node = g.node(&start, "flaky").await;
    assert_eq!((node.state, node.attempts), (NodeState::Failed, 5));
    assert_eq!(node.error.as_deref(), Some("attempt 5 fails"));
    assert_eq!(crew.begun("flaky"), 5);
}

/// An attempt that takes too long has failed.
pub async fn an_attempt_that_hangs_is_cut_off(g: EngineFixture) {
    let crew = Crew::at_work(&g);
    let hang = node(
        json!({"id": "hang", "type": "task", "queue": g.queue, "timeout_ms": 200,
            "retry": {"max_attempts": 2, "base_ms": 10}}),
    );
    let start = g.start(chain(vec![hang]), json!({})).await;
    g.failed(&start, "node `hang` failed: timed out after 200ms")
        .await;
    assert_eq!(g.node(&start, "hang").await.attempts, 2);
    assert_eq!(crew.begun("hang"), 2);
}

/// Claims the next job of the queue and never says anything again.
async fn claim_and_die(g: &EngineFixture) {
    g.queued().await;
    let claim = JobClaim {
        queue: g.queue.clone(),
        worker: "dead".to_owned(),
        max: 1,
        lease: Some(Duration::from_millis(200)),
    };
    let claimed = g.store.job_claim(&claim).await.expect("the store answers");
    assert_eq!(claimed.jobs.len(), 1);
}

/// Its lease runs out, and somebody else does it.
pub async fn what_a_dead_worker_had_is_done_by_another(g: EngineFixture) {
    let graph = chain(vec![
        task(&g.queue, "first", "echo"),
        task(&g.queue, "second", "echo"),
    ]);
    let start = g.start(graph, json!({})).await;
    claim_and_die(&g).await;
    let crew = Crew::at_work(&g);
    g.completed(&start).await;
    assert_eq!(g.node(&start, "first").await.attempts, 2);
    assert_eq!((crew.begun("first"), crew.begun("second")), (1, 1));
}

/// If it was the last attempt, the node has failed.
pub async fn what_a_dead_worker_had_at_the_last_attempt_has_failed(g: EngineFixture) {
    let only_once = node(
        json!({"id": "once", "type": "task", "queue": g.queue, "kind": "echo",
        "retry": {"max_attempts": 1}}),
    );
    let start = g.start(chain(vec![only_once]), json!({})).await;
    claim_and_die(&g).await;
    let crew = Crew::at_work(&g);
    let (end, error) = g.ended(&start).await;
    assert_eq!(end, ExecutionEnd::Failed);
    let error = error.unwrap_or_default();
    assert!(error.starts_with("node `once` failed: "), "{error}");
    let node = g.node(&start, "once").await;
    assert_eq!((node.state, node.attempts), (NodeState::Failed, 1));
    assert_eq!(crew.begun("once"), 0);
}
