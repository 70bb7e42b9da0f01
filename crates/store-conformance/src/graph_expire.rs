//! Graphs that end by time: a node's job lost its last lease, or the execution timed out.

use crate::Fixture;
use crate::factory::{LEASE, ok};
use crate::graph_factory::{
    TIMEOUT_SWEEPER, diamond, graph, graph_of, task, task_with_max_attempts,
};
use crate::graph_invariants;
use crate::job_factory::{WORKER, completed, job_refs};
use leasehold_core::graph::{GraphStop, NodeState};
use leasehold_core::job::JobFinished;
use leasehold_core::{ExecutionEnd, FailureReason, JobStatus, RequestStatus};
use leasehold_store::graph::{EndedExecution, TIMED_OUT};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(60);

/// A node whose job lost its last lease fails, and the execution fails with it.
pub async fn job_that_lost_its_last_lease_fails_its_node(f: Fixture) {
    let nodes = vec![
        task_with_max_attempts("frail", 1),
        task("other"),
        task("next"),
    ];
    let t = f
        .graph_workspace(1, graph_of(nodes, &[("frail", "next")]))
        .await;
    let s = f.enqueue_started(&t).await;
    let jobs = f.claim_jobs(1).await;
    f.advance(LEASE.as_secs());
    let expired = f.requeue_expired_jobs().await;
    assert_eq!(expired.len(), 1);
    assert_eq!(expired[0].status, JobStatus::Failed);
    assert_eq!(
        f.node_letters(s.execution).await,
        "rrw",
        "the graph is not updated yet"
    );
    assert_eq!(f.slots(t.workspace).await.in_use, 1);

    let error = format!("node `frail` failed: the lease of {WORKER} expired");
    let ended = EndedExecution {
        execution: s.execution,
        request: s.request,
        end: ExecutionEnd::Failed,
        status: RequestStatus::Failed,
        reason: Some(FailureReason::ExecutionFailed),
        error: Some(error.clone()),
    };
    assert_eq!(f.expire_graphs().await, [ended]);
    assert_eq!(f.node_letters(s.execution).await, "fxx");
    let node = f.node(s.execution, "frail").await;
    assert_eq!((node.attempts, node.job), (1, Some(jobs[0].id)));
    let request = f.request(t.workspace, s.request).await;
    assert_eq!(request.status, RequestStatus::Failed);
    assert_eq!(
        request.failure_reason,
        Some(FailureReason::ExecutionFailed.into())
    );
    assert_eq!(request.last_error, Some(error));
    assert_eq!(f.slots(t.workspace).await.in_use, 0);
    assert_eq!(f.claim_jobs(10).await, [], "the sibling is cancelled");
    assert_eq!(f.expire_graphs().await, []);
    graph_invariants::check(&f, &[s]).await;
}

/// The same holds if a claim found the expired lease.
pub async fn last_lease_expired_by_a_claim_fails_the_node(f: Fixture) {
    let t = f
        .graph_workspace(1, graph_of(vec![task_with_max_attempts("a", 1)], &[]))
        .await;
    let s = f.enqueue_started(&t).await;
    assert_eq!(f.claim_jobs(1).await.len(), 1);
    f.advance(LEASE.as_secs());
    assert_eq!(f.claim_jobs(1).await, []);
    assert_eq!(f.expire_graphs().await.len(), 1);
    assert_eq!(f.node_letters(s.execution).await, "f");
    graph_invariants::check(&f, &[s]).await;
}

/// A lost lease does not affect the graph while the job has attempts left.
pub async fn lost_lease_with_attempts_left_fails_nothing(f: Fixture) {
    let t = f
        .graph_workspace(1, graph_of(vec![task_with_max_attempts("a", 2)], &[]))
        .await;
    let s = f.enqueue_started(&t).await;
    f.claim_nodes(&["a"]).await;
    f.advance(LEASE.as_secs());
    assert_eq!(f.requeue_expired_jobs().await.len(), 1);
    assert_eq!(f.expire_graphs().await, []);
    assert_eq!(f.node_letters(s.execution).await, "r");
    let jobs = f.claim_nodes(&["a"]).await;
    assert_eq!(jobs[0].attempt, 2);
    assert_eq!(
        f.finish_job(&jobs[0], completed()).await,
        JobFinished::Completed
    );
    let node = f.node(s.execution, "a").await;
    assert_eq!((node.state, node.attempts), (NodeState::Completed, 2));
    graph_invariants::check(&f, &[s]).await;
}

/// An execution ends when its timeout has passed, and not before.
pub async fn graph_ends_when_its_timeout_has_passed(f: Fixture) {
    let t = f
        .graph_workspace_with_timeout(1, diamond(), Some(TIMEOUT))
        .await;
    let s = f.enqueue_started(&t).await;
    f.advance(TIMEOUT.as_secs() - 1);
    assert_eq!(f.expire_graphs().await, []);
    let jobs = f.claim_nodes(&["a"]).await;
    f.advance(1);
    let ended = EndedExecution {
        execution: s.execution,
        request: s.request,
        end: ExecutionEnd::TimedOut,
        status: RequestStatus::Failed,
        reason: Some(FailureReason::TimedOut),
        error: Some(TIMED_OUT.to_owned()),
    };
    assert_eq!(f.expire_graphs().await, [ended]);
    assert_eq!(f.node_letters(s.execution).await, "xxxx");
    assert_eq!(f.renew_jobs(WORKER, &job_refs(&jobs)).await, []);
    let request = f.request(t.workspace, s.request).await;
    assert_eq!(request.failure_reason, Some(FailureReason::TimedOut.into()));
    assert_eq!(request.last_error.as_deref(), Some(TIMED_OUT));
    assert_eq!(f.slots(t.workspace).await.in_use, 0);
    assert_eq!(f.expire_graphs().await, []);
    graph_invariants::check(&f, &[s]).await;
}

/// A graph without a timeout, or that ended in time, is unchanged.
pub async fn graph_that_ended_in_time_is_unchanged(f: Fixture) {
    let endless = f.graph_workspace(1, diamond()).await;
    let endless = f.enqueue_started(&endless).await;
    f.stop_graph(endless.execution, GraphStop::Cancelled).await;
    let t = f
        .graph_workspace_with_timeout(1, graph(&["a"], &[]), Some(TIMEOUT))
        .await;
    let done = f.enqueue_started(&t).await;
    f.complete_node("a", serde_json::json!(1)).await;
    let open = f.graph_workspace(1, diamond()).await;
    let open = f.enqueue_started(&open).await;
    f.advance(10 * TIMEOUT.as_secs());
    assert_eq!(f.expire_graphs().await, []);
    assert_eq!(f.node_letters(done.execution).await, "c");
    assert_eq!(f.node_letters(open.execution).await, "rwww");
}

/// A job that used its last attempt in a graph that has ended since is ignored.
pub async fn exhausted_job_of_an_ended_graph_is_ignored(f: Fixture) {
    let nodes = vec![
        task_with_max_attempts("a", 1),
        task_with_max_attempts("b", 1),
    ];
    let t = f.graph_workspace(1, graph_of(nodes, &[])).await;
    let s = f.enqueue_started(&t).await;
    f.claim_nodes(&["a", "b"]).await;
    f.advance(LEASE.as_secs());
    assert_eq!(f.requeue_expired_jobs().await.len(), 2);
    f.stop_graph(s.execution, GraphStop::Cancelled).await;
    assert_eq!(f.expire_graphs().await, []);
    assert_eq!(f.node_letters(s.execution).await, "xx");
    graph_invariants::check(&f, &[s]).await;
}

/// Two nodes with exhausted jobs end their graph once.
pub async fn two_exhausted_nodes_end_a_graph_once(f: Fixture) {
    let nodes = vec![
        task_with_max_attempts("a", 1),
        task_with_max_attempts("b", 1),
    ];
    let t = f.graph_workspace(1, graph_of(nodes, &[])).await;
    let s = f.enqueue_started(&t).await;
    f.claim_nodes(&["a", "b"]).await;
    f.advance(LEASE.as_secs());
    assert_eq!(f.requeue_expired_jobs().await.len(), 2);
    assert_eq!(f.expire_graphs().await.len(), 1);
    assert_eq!(f.expire_graphs().await, []);
    let states = f.node_states(s.execution).await;
    assert!(states.contains(&NodeState::Failed) && states.contains(&NodeState::Cancelled));
    graph_invariants::check(&f, &[s]).await;
}

/// One call ends at most `limit` graphs of both kinds; repeated calls end all.
pub async fn takes_at_most_its_limit(f: Fixture) {
    let frail = graph_of(vec![task_with_max_attempts("a", 1)], &[]);
    let t = f
        .graph_workspace_with_timeout(9, frail, Some(TIMEOUT))
        .await;
    let all = f.enqueue_started_many(&t, 9).await;
    assert_eq!(f.claim_jobs(4).await.len(), 4);
    f.advance(TIMEOUT.as_secs());
    assert_eq!(f.requeue_expired_jobs().await.len(), 4);
    let mut found = Vec::new();
    loop {
        let ended = ok(f.store.graph_expire(TIMEOUT_SWEEPER, 2).await);
        assert!(ended.len() <= 2);
        if ended.is_empty() {
            break;
        }
        found.extend(ended.into_iter().map(|ended| ended.execution));
    }
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), 9);
    assert_eq!(f.slots(t.workspace).await.in_use, 0);
    graph_invariants::check(&f, &all).await;
}

/// Concurrent calls end each graph once.
pub async fn concurrent_calls_end_each_graph_once(f: Fixture) {
    let frail = graph_of(vec![task_with_max_attempts("a", 1), task("b")], &[]);
    let t = f
        .graph_workspace_with_timeout(40, frail, Some(TIMEOUT))
        .await;
    let all = f.enqueue_started_many(&t, 40).await;
    assert_eq!(f.claim_jobs(20).await.len(), 20);
    f.advance(TIMEOUT.as_secs());
    f.requeue_expired_jobs().await;
    let calls = (0..6).map(|_| {
        let store = f.store.clone();
        tokio::spawn(async move { ok(store.graph_expire(TIMEOUT_SWEEPER, 1_000).await) })
    });
    let mut found = Vec::new();
    for ended in futures::future::join_all(calls.collect::<Vec<_>>()).await {
        found.extend(ended.expect("the call did not panic"));
    }
    found.extend(f.expire_graphs().await);
    let mut executions: Vec<_> = found.iter().map(|ended| ended.execution).collect();
    executions.sort_unstable();
    executions.dedup();
    assert_eq!((executions.len(), found.len()), (40, 40));
    assert_eq!(f.slots(t.workspace).await.in_use, 0);
    graph_invariants::check(&f, &all).await;
}
