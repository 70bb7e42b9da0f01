//! What a store promises about graphs that time ends: a node's job lost its last lease, or the execution took too long.

use crate::Fixture;
use crate::factory::{LEASE, ok};
use crate::graph_factory::{SETTLER, diamond, graph, graph_of, task, tried_task};
use crate::graph_invariants;
use crate::job_factory::{WORKER, completed, job_refs};
use leasehold_core::graph::{GraphStop, NodeState};
use leasehold_core::job::JobFinished;
use leasehold_core::{ExecutionEnd, FailureReason, JobStatus, RequestStatus};
use leasehold_store::graph::{EndedExecution, TIMED_OUT};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(60);

/// A node whose job lost its last lease fails, and the execution with it.
pub async fn a_job_that_lost_its_last_lease_fails_its_node(f: Fixture) {
    let nodes = vec![tried_task("frail", 1), task("other"), task("next")];
    let t = f.graph_site(1, graph_of(nodes, &[("frail", "next")])).await;
    let s = f.started(&t).await;
    let jobs = f.take(1).await;
    f.advance(LEASE.as_secs());
    let expired = f.sweep().await;
    assert_eq!(expired.len(), 1);
    assert_eq!(expired[0].status, JobStatus::Failed);
    assert_eq!(
        f.letters(s.execution).await,
        "rrw",
        "the graph does not know yet"
    );
    assert_eq!(f.slots(t.workspace).await.in_use, 1);

    let error = format!("node `frail` failed: the lease of {WORKER} expired");
    let settled = EndedExecution {
        execution: s.execution,
        request: s.request,
        end: ExecutionEnd::Failed,
        status: RequestStatus::Failed,
        reason: Some(FailureReason::ExecutionFailed),
        error: Some(error.clone()),
    };
    assert_eq!(f.settle_graphs().await, [settled]);
    assert_eq!(f.letters(s.execution).await, "fxx");
    let node = f.node(s.execution, "frail").await;
    assert_eq!((node.attempts, node.job), (1, Some(jobs[0].id)));
    let request = f.request(t.workspace, s.request).await;
    assert_eq!(request.status, RequestStatus::Failed);
    assert_eq!(request.failure_reason, Some(FailureReason::ExecutionFailed));
    assert_eq!(request.last_error, Some(error));
    assert_eq!(f.slots(t.workspace).await.in_use, 0);
    assert_eq!(f.take(10).await, [], "its sibling is no longer wanted");
    assert_eq!(f.settle_graphs().await, []);
    graph_invariants::check(&f, &[s]).await;
}

/// The same when a claim found the expired lease.
pub async fn a_lease_that_a_claim_took_back_counts_too(f: Fixture) {
    let t = f
        .graph_site(1, graph_of(vec![tried_task("a", 1)], &[]))
        .await;
    let s = f.started(&t).await;
    assert_eq!(f.take(1).await.len(), 1);
    f.advance(LEASE.as_secs());
    assert_eq!(f.take(1).await, []);
    assert_eq!(f.settle_graphs().await.len(), 1);
    assert_eq!(f.letters(s.execution).await, "f");
    graph_invariants::check(&f, &[s]).await;
}

/// A lost lease of a job that has attempts left is only the job's matter.
pub async fn a_lost_lease_with_attempts_left_fails_nothing(f: Fixture) {
    let t = f
        .graph_site(1, graph_of(vec![tried_task("a", 2)], &[]))
        .await;
    let s = f.started(&t).await;
    f.take_nodes(&["a"]).await;
    f.advance(LEASE.as_secs());
    assert_eq!(f.sweep().await.len(), 1);
    assert_eq!(f.settle_graphs().await, []);
    assert_eq!(f.letters(s.execution).await, "r");
    let jobs = f.take_nodes(&["a"]).await;
    assert_eq!(jobs[0].attempt, 2);
    assert_eq!(f.end(&jobs[0], completed()).await, JobFinished::Completed);
    let node = f.node(s.execution, "a").await;
    assert_eq!((node.state, node.attempts), (NodeState::Completed, 2));
    graph_invariants::check(&f, &[s]).await;
}

/// An execution ends when its timeout has passed, and not before.
pub async fn a_timeout_that_has_passed_ends_the_graph(f: Fixture) {
    let t = f.timed_graph_site(1, diamond(), Some(TIMEOUT)).await;
    let s = f.started(&t).await;
    f.advance(TIMEOUT.as_secs() - 1);
    assert_eq!(f.settle_graphs().await, []);
    let jobs = f.take_nodes(&["a"]).await;
    f.advance(1);
    let settled = EndedExecution {
        execution: s.execution,
        request: s.request,
        end: ExecutionEnd::TimedOut,
        status: RequestStatus::Failed,
        reason: Some(FailureReason::TimedOut),
        error: Some(TIMED_OUT.to_owned()),
    };
    assert_eq!(f.settle_graphs().await, [settled]);
    assert_eq!(f.letters(s.execution).await, "xxxx");
    assert_eq!(f.keep(WORKER, &job_refs(&jobs)).await, []);
    let request = f.request(t.workspace, s.request).await;
    assert_eq!(request.failure_reason, Some(FailureReason::TimedOut));
    assert_eq!(request.last_error.as_deref(), Some(TIMED_OUT));
    assert_eq!(f.slots(t.workspace).await.in_use, 0);
    assert_eq!(f.settle_graphs().await, []);
    graph_invariants::check(&f, &[s]).await;
}

/// What has no timeout, or ended in time, is left alone.
pub async fn what_ended_in_time_is_left_alone(f: Fixture) {
    let endless = f.graph_site(1, diamond()).await;
    let endless = f.started(&endless).await;
    f.stop_graph(endless.execution, GraphStop::Cancelled).await;
    let t = f
        .timed_graph_site(1, graph(&["a"], &[]), Some(TIMEOUT))
        .await;
    let done = f.started(&t).await;
    f.complete_node("a", serde_json::json!(1)).await;
    let open = f.graph_site(1, diamond()).await;
    let open = f.started(&open).await;
    f.advance(10 * TIMEOUT.as_secs());
    assert_eq!(f.settle_graphs().await, []);
    assert_eq!(f.letters(done.execution).await, "c");
    assert_eq!(f.letters(open.execution).await, "rwww");
}

/// A job that was spent in a graph that ended since means nothing any more.
pub async fn what_was_spent_in_an_ended_graph_means_nothing(f: Fixture) {
    let nodes = vec![tried_task("a", 1), tried_task("b", 1)];
    let t = f.graph_site(1, graph_of(nodes, &[])).await;
    let s = f.started(&t).await;
    f.take_nodes(&["a", "b"]).await;
    f.advance(LEASE.as_secs());
    assert_eq!(f.sweep().await.len(), 2);
    f.stop_graph(s.execution, GraphStop::Cancelled).await;
    assert_eq!(f.settle_graphs().await, []);
    assert_eq!(f.letters(s.execution).await, "xx");
    graph_invariants::check(&f, &[s]).await;
}

/// Two spent nodes of one graph end it once.
pub async fn two_spent_nodes_end_a_graph_once(f: Fixture) {
    let nodes = vec![tried_task("a", 1), tried_task("b", 1)];
    let t = f.graph_site(1, graph_of(nodes, &[])).await;
    let s = f.started(&t).await;
    f.take_nodes(&["a", "b"]).await;
    f.advance(LEASE.as_secs());
    assert_eq!(f.sweep().await.len(), 2);
    assert_eq!(f.settle_graphs().await.len(), 1);
    assert_eq!(f.settle_graphs().await, []);
    let states = f.node_states(s.execution).await;
    assert!(states.contains(&NodeState::Failed) && states.contains(&NodeState::Cancelled));
    graph_invariants::check(&f, &[s]).await;
}

/// At most as many as asked, of both sorts, until none is left.
pub async fn takes_at_most_its_limit(f: Fixture) {
    let frail = graph_of(vec![tried_task("a", 1)], &[]);
    let t = f.timed_graph_site(9, frail, Some(TIMEOUT)).await;
    let all = f.started_many(&t, 9).await;
    assert_eq!(f.take(4).await.len(), 4);
    f.advance(TIMEOUT.as_secs());
    assert_eq!(f.sweep().await.len(), 4);
    let mut found = Vec::new();
    loop {
        let settled = ok(f.store.graph_settle(SETTLER, 2).await);
        assert!(settled.len() <= 2);
        if settled.is_empty() {
            break;
        }
        found.extend(settled.into_iter().map(|settled| settled.execution));
    }
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), 9);
    assert_eq!(f.slots(t.workspace).await.in_use, 0);
    graph_invariants::check(&f, &all).await;
}

/// From many places at once each graph is settled once.
pub async fn from_many_places_at_once_settles_each_once(f: Fixture) {
    let frail = graph_of(vec![tried_task("a", 1), task("b")], &[]);
    let t = f.timed_graph_site(40, frail, Some(TIMEOUT)).await;
    let all = f.started_many(&t, 40).await;
    assert_eq!(f.take(20).await.len(), 20);
    f.advance(TIMEOUT.as_secs());
    f.sweep().await;
    let settlers = (0..6).map(|_| {
        let store = f.store.clone();
        tokio::spawn(async move { ok(store.graph_settle(SETTLER, 1_000).await) })
    });
    let mut found = Vec::new();
    for settled in futures::future::join_all(settlers.collect::<Vec<_>>()).await {
        found.extend(settled.expect("no settler panicked"));
    }
    found.extend(f.settle_graphs().await);
    let mut executions: Vec<_> = found.iter().map(|settled| settled.execution).collect();
    executions.sort_unstable();
    executions.dedup();
    assert_eq!((executions.len(), found.len()), (40, 40));
    assert_eq!(f.slots(t.workspace).await.in_use, 0);
    graph_invariants::check(&f, &all).await;
}
