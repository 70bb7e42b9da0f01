//! Attempts: retries by the policy, timeouts, and jobs of dead workers.

use crate::fixture::EngineFixture;
use crate::graphs::{chain, node, task, task_of};
use crate::task_workers::TaskWorkers;
use leasehold_core::ExecutionEnd;
use leasehold_core::graph::NodeState;
use leasehold_core::job::JobClaim;
use serde_json::json;
use std::time::Duration;

/// A task that fails twice completes at the third attempt.
pub async fn failed_attempt_is_retried(g: EngineFixture) {
    let workers = TaskWorkers::start(&g);
    let flaky = task_of(&g.queue, "flaky", "flaky", json!({"times": 2}));
    let start = g.start(chain(vec![flaky]), json!({})).await;
    g.expect_completed(&start).await;
    let node = g.node(&start, "flaky").await;
    assert_eq!((node.state, node.attempts), (NodeState::Completed, 3));
    assert_eq!(g.output(&start, "flaky").await, json!({"attempt": 3}));
    assert_eq!(workers.attempts("flaky"), 3);
}

/// After its last failed attempt the node fails, and the execution fails with it.
pub async fn last_failed_attempt_fails_the_execution(g: EngineFixture) {
    let workers = TaskWorkers::start(&g);
    let flaky = task_of(&g.queue, "flaky", "flaky", json!({"times": 99}));
    let start = g.start(chain(vec![flaky]), json!({})).await;
    g.expect_failed(&start, "node `flaky` failed: attempt 5 fails")
        .await;
    let node = g.node(&start, "flaky").await;
    assert_eq!((node.state, node.attempts), (NodeState::Failed, 5));
    assert_eq!(node.error.as_deref(), Some("attempt 5 fails"));
    assert_eq!(workers.attempts("flaky"), 5);
}

/// An attempt that takes too long fails.
pub async fn hanging_attempt_times_out(g: EngineFixture) {
    let workers = TaskWorkers::start(&g);
    let hang = node(
        json!({"id": "hang", "type": "task", "queue": g.queue, "timeout_ms": 200,
            "retry": {"max_attempts": 2, "base_ms": 10}}),
    );
    let start = g.start(chain(vec![hang]), json!({})).await;
    g.expect_failed(&start, "node `hang` failed: timed out after 200ms")
        .await;
    assert_eq!(g.node(&start, "hang").await.attempts, 2);
    assert_eq!(workers.attempts("hang"), 2);
}

/// Claims the next job of the queue and then does nothing.
async fn claim_and_die(g: &EngineFixture) {
    g.wait_queued().await;
    let claim = JobClaim {
        queue: g.queue.clone(),
        worker: "dead".to_owned(),
        max: 1,
        lease: Some(Duration::from_millis(200)),
    };
    let claimed = g.store.job_claim(&claim).await.expect("the claim failed");
    assert_eq!(claimed.jobs.len(), 1);
}

/// The lease of a dead worker expires, and another worker runs the job.
pub async fn job_of_a_dead_worker_is_retried(g: EngineFixture) {
    let graph = chain(vec![
        task(&g.queue, "first", "echo"),
        task(&g.queue, "second", "echo"),
    ]);
    let start = g.start(graph, json!({})).await;
    claim_and_die(&g).await;
    let workers = TaskWorkers::start(&g);
    g.expect_completed(&start).await;
    assert_eq!(g.node(&start, "first").await.attempts, 2);
    assert_eq!(
        (workers.attempts("first"), workers.attempts("second")),
        (1, 1)
    );
}

/// On the last attempt an expired lease fails the node.
pub async fn job_of_a_dead_worker_fails_on_the_last_attempt(g: EngineFixture) {
    let only_once = node(
        json!({"id": "once", "type": "task", "queue": g.queue, "kind": "echo",
        "retry": {"max_attempts": 1}}),
    );
    let start = g.start(chain(vec![only_once]), json!({})).await;
    claim_and_die(&g).await;
    let workers = TaskWorkers::start(&g);
    let (end, error) = g.wait_ended(&start).await;
    assert_eq!(end, ExecutionEnd::Failed);
    let error = error.unwrap_or_default();
    assert!(error.starts_with("node `once` failed: "), "{error}");
    let node = g.node(&start, "once").await;
    assert_eq!((node.state, node.attempts), (NodeState::Failed, 1));
    assert_eq!(workers.attempts("once"), 0);
}
