//! Stopping a graph: no node continues, and execution, request and slot end with it.

use crate::Fixture;
use crate::factory::{OWNER, USER, ok};
use crate::graph_factory::{StartedGraph, TIMEOUT_SWEEPER, diamond, graph};
use crate::graph_invariants;
use crate::job_factory::{WORKER, completed, job_refs};
use leasehold_core::graph::{GraphStop, NodeState};
use leasehold_core::job::JobFinished;
use leasehold_core::{ExecutionStatus, FailureReason, JobStatus, RequestStatus};
use leasehold_store::fresh_id;
use leasehold_store::graph::{ABANDONED, EndedExecution, GraphStopped};
use serde_json::json;

use RequestStatus::{Claimed, Dispatched, Failed, Pending};

/// Each stop sets status and reason of execution and request and frees the slot.
pub async fn each_stop_has_its_status_and_reason(f: Fixture) {
    for (stop, status, reason) in [
        (
            GraphStop::Cancelled,
            ExecutionStatus::Cancelled,
            FailureReason::Cancelled,
        ),
        (
            GraphStop::Terminated,
            ExecutionStatus::Failed,
            FailureReason::Terminated,
        ),
        (
            GraphStop::TimedOut,
            ExecutionStatus::Failed,
            FailureReason::TimedOut,
        ),
    ] {
        let t = f.graph_workspace(1, diamond()).await;
        let s = f.enqueue_started(&t).await;
        f.advance(1);
        let ended = EndedExecution {
            execution: s.execution,
            request: s.request,
            end: stop.into(),
            status: Failed,
            reason: Some(reason),
            error: Some("enough".to_owned()),
        };
        let stopped = f.stop_graph(s.execution, stop).await;
        assert_eq!(stopped, GraphStopped::Stopped(ended));
        let run = f.graph_run(s.execution).await;
        assert_eq!(run.state.letters(), "xxxx");
        assert_eq!(run.state.end(), Some(stop.into()));
        assert_eq!(run.error.as_deref(), Some("enough"));
        assert_eq!(run.finished_at, Some(f.now()));
        let execution = f.execution(t.workspace, s.execution).await;
        assert_eq!(execution.expect("the execution is kept").status, status);
        let request = f.request(t.workspace, s.request).await;
        assert_eq!(request.failure_reason, Some(reason.into()));
        assert_eq!(request.last_error.as_deref(), Some("enough"));
        let events = f.timeline(t.workspace, s.request).await;
        let last = crate::timeline::step(events.last().expect("the timeline is not empty"));
        let word = Some(reason.as_str());
        assert_eq!(last, (Some(Dispatched), Failed, TIMEOUT_SWEEPER, word));
        assert_eq!(f.slots(t.workspace).await.in_use, 0);
        graph_invariants::check(&f, &[s]).await;
    }
}

/// Jobs that were claimed before fail, leases of running jobs are lost, jobs that were never claimed are deleted, and completed nodes stay
/// completed.
pub async fn stop_fails_claimed_jobs_and_revokes_leases(f: Fixture) {
    let nodes = ["done", "leased", "waits", "fresh", "after"];
    let t = f
        .graph_workspace(1, graph(&nodes, &[("done", "after")]))
        .await;
    let s = f.enqueue_started(&t).await;
    let jobs = f.claim_jobs(3).await;
    f.finish_job(&jobs[0], completed()).await;
    let back = leasehold_core::job::JobEnd::Returned;
    f.finish_job(&jobs[2], back).await;
    let stopped = f.stop_graph(s.execution, GraphStop::Cancelled).await;
    assert!(matches!(stopped, GraphStopped::Stopped(_)));
    assert_eq!(f.node_letters(s.execution).await, "cxxxx");
    assert_eq!(f.renew_jobs(WORKER, &job_refs(&jobs)).await, []);
    let lost = f.finish_job(&jobs[1], completed()).await;
    assert_eq!(lost, JobFinished::LeaseLost);
    assert_eq!(f.claim_jobs(10).await, []);
    for id in ["leased", "waits", "fresh", "after"] {
        let node = f.node(s.execution, id).await;
        assert_eq!(node.state, NodeState::Cancelled);
        assert_eq!(node.finished_at, Some(f.now()));
        let was_claimed = ["leased", "waits"].contains(&id);
        assert_eq!(node.job.is_some(), was_claimed, "{id}");
        if let Some(job) = node.job {
            let job = f.job(job).await;
            assert_eq!(job.status, JobStatus::Failed);
            assert_eq!(job.last_error.as_deref(), Some(ABANDONED));
        }
    }
    assert_eq!(f.node(s.execution, "leased").await.attempts, 1);
    graph_invariants::check(&f, &[s]).await;
    crate::job_invariants::check(&f).await;
}

/// Other executions are unchanged, including jobs of the same claim.
pub async fn other_executions_are_unchanged(f: Fixture) {
    let t = f.graph_workspace(2, graph(&["a"], &[])).await;
    let all = f.enqueue_started_many(&t, 2).await;
    f.enqueue_jobs(1).await;
    let jobs = f.claim_jobs(10).await;
    assert_eq!(jobs.len(), 3);
    f.stop_graph(all[0].execution, GraphStop::Terminated).await;
    assert_eq!(f.renew_jobs(WORKER, &job_refs(&jobs)).await.len(), 2);
    assert_eq!(f.node_letters(all[1].execution).await, "r");
    assert_eq!(f.slots(t.workspace).await.in_use, 1);
    graph_invariants::check(&f, &all).await;
}

/// The first end wins: a second stop, or the stop of a completed graph, changes nothing.
pub async fn stop_of_an_ended_graph_changes_nothing(f: Fixture) {
    let t = f.graph_workspace(2, graph(&["a"], &[])).await;
    let completed = f.enqueue_started(&t).await;
    f.complete_node("a", json!(1)).await;
    let stopped = f.enqueue_started(&t).await;
    f.stop_graph(stopped.execution, GraphStop::Cancelled).await;
    for s in [completed, stopped] {
        let before = f.graph_run(s.execution).await;
        f.advance(1);
        let again = f.stop_graph(s.execution, GraphStop::Terminated).await;
        assert_eq!(again, GraphStopped::AlreadyEnded);
        assert_eq!(f.graph_run(s.execution).await, before);
    }
}

/// A graph that was never started cannot be stopped.
pub async fn stop_of_an_unknown_graph_is_not_found(f: Fixture) {
    let t = f.graph_workspace(1, diamond()).await;
    let claimed = f.enqueue_running(&t).await;
    for execution in [fresh_id(), claimed.execution] {
        let stopped = f.stop_graph(execution, GraphStop::Cancelled).await;
        assert_eq!(stopped, GraphStopped::NotFound);
    }
    assert_eq!(f.slots(t.workspace).await.in_use, 1);
}

/// A request that is not DISPATCHED yet passes through every status to its end.
pub async fn request_that_is_not_dispatched_passes_through_every_status(f: Fixture) {
    let t = f.graph_workspace(1, diamond()).await;
    let claimed = f.enqueue_claimed(&t).await;
    f.start_graph(&claimed).await;
    f.stop_graph(claimed.execution, GraphStop::Cancelled).await;
    let timeline = [
        (None, Pending, USER, None),
        (Some(Pending), Claimed, OWNER, None),
        (Some(Claimed), Dispatched, TIMEOUT_SWEEPER, None),
        (Some(Dispatched), Failed, TIMEOUT_SWEEPER, Some("cancelled")),
    ];
    f.assert_timeline(t.workspace, claimed.id, &timeline).await;
    graph_invariants::check(&f, &[StartedGraph::of(&t, &claimed)]).await;
}

/// Of concurrent stops one counts.
pub async fn concurrent_stops_count_once(f: Fixture) {
    let t = f.graph_workspace(10, diamond()).await;
    let all = f.enqueue_started_many(&t, 10).await;
    f.claim_jobs(5).await;
    let stops = (0..30).map(|n: usize| {
        let (store, execution) = (f.store.clone(), all[n % 10].execution);
        tokio::spawn(async move {
            let stop = GraphStop::Terminated;
            ok(store
                .graph_stop(execution, stop, TIMEOUT_SWEEPER, "enough")
                .await)
        })
    });
    let answers = futures::future::join_all(stops.collect::<Vec<_>>()).await;
    let stopped = answers
        .into_iter()
        .filter(|answer| matches!(answer, Ok(GraphStopped::Stopped(_))))
        .count();
    assert_eq!(stopped, 10);
    assert_eq!(f.slots(t.workspace).await.in_use, 0);
    graph_invariants::check(&f, &all).await;
}
