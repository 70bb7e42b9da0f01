//! What a store promises about stopping a graph: nothing of it goes on, and execution, request and slot end with it.

use crate::Fixture;
use crate::factory::{OWNER, USER, ok};
use crate::graph_factory::{SETTLER, Started, diamond, graph};
use crate::graph_invariants;
use crate::job_factory::{WORKER, completed, job_refs};
use leasehold_core::graph::{GraphStop, NodeState};
use leasehold_core::job::JobFinished;
use leasehold_core::{ExecutionStatus, FailureReason, JobStatus, RequestStatus};
use leasehold_store::fresh_id;
use leasehold_store::graph::{ABANDONED, EndedExecution, GraphStopped};
use serde_json::json;

use RequestStatus::{Claimed, Dispatched, Failed, Pending};

/// Each stop gives execution and request their status and reason, and frees the slot.
pub async fn each_has_its_status_and_reason(f: Fixture) {
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
        let t = f.graph_site(1, diamond()).await;
        let s = f.started(&t).await;
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
        assert_eq!(execution.expect("it is kept").status, status);
        let request = f.request(t.workspace, s.request).await;
        assert_eq!(request.failure_reason, Some(reason));
        assert_eq!(request.last_error.as_deref(), Some("enough"));
        let events = f.timeline(t.workspace, s.request).await;
        let last = crate::timeline::step(events.last().expect("it has a history"));
        let word = Some(reason.as_str());
        assert_eq!(last, (Some(Dispatched), Failed, SETTLER, word));
        assert_eq!(f.slots(t.workspace).await.in_use, 0);
        graph_invariants::check(&f, &[s]).await;
    }
}

/// Jobs that nobody has are failed, leases of those that somebody has are lost, and what completed stays completed.
pub async fn jobs_are_failed_and_leases_are_lost(f: Fixture) {
    let nodes = ["done", "leased", "waits", "fresh", "after"];
    let t = f.graph_site(1, graph(&nodes, &[("done", "after")])).await;
    let s = f.started(&t).await;
    let jobs = f.take(3).await;
    f.end(&jobs[0], completed()).await;
    let back = leasehold_core::job::JobEnd::GivenBack;
    f.end(&jobs[2], back).await;
    let stopped = f.stop_graph(s.execution, GraphStop::Cancelled).await;
    assert!(matches!(stopped, GraphStopped::Stopped(_)));
    assert_eq!(f.letters(s.execution).await, "cxxxx");
    assert_eq!(f.keep(WORKER, &job_refs(&jobs)).await, []);
    let lost = f.end(&jobs[1], completed()).await;
    assert_eq!(lost, JobFinished::LeaseLost);
    assert_eq!(f.take(10).await, []);
    for id in ["leased", "waits", "fresh", "after"] {
        let node = f.node(s.execution, id).await;
        assert_eq!(node.state, NodeState::Cancelled);
        assert_eq!(node.finished_at, Some(f.now()));
        let job = f.job(node.job.expect("it was begun")).await;
        assert_eq!(job.status, JobStatus::Failed);
        assert_eq!(job.last_error.as_deref(), Some(ABANDONED));
    }
    assert_eq!(f.node(s.execution, "leased").await.attempts, 1);
    graph_invariants::check(&f, &[s]).await;
    crate::job_invariants::check(&f).await;
}

/// Nothing of another execution is touched, not even jobs of the same claim.
pub async fn others_are_left_alone(f: Fixture) {
    let t = f.graph_site(2, graph(&["a"], &[])).await;
    let all = f.started_many(&t, 2).await;
    f.put(1).await;
    let jobs = f.take(10).await;
    assert_eq!(jobs.len(), 3);
    f.stop_graph(all[0].execution, GraphStop::Terminated).await;
    assert_eq!(f.keep(WORKER, &job_refs(&jobs)).await.len(), 2);
    assert_eq!(f.letters(all[1].execution).await, "r");
    assert_eq!(f.slots(t.workspace).await.in_use, 1);
    graph_invariants::check(&f, &all).await;
}

/// The first end counts: a second stop, or one of a graph that completed, changes nothing.
pub async fn of_one_that_has_ended_changes_nothing(f: Fixture) {
    let t = f.graph_site(2, graph(&["a"], &[])).await;
    let completed = f.started(&t).await;
    f.complete_node("a", json!(1)).await;
    let stopped = f.started(&t).await;
    f.stop_graph(stopped.execution, GraphStop::Cancelled).await;
    for s in [completed, stopped] {
        let before = f.graph_run(s.execution).await;
        f.advance(1);
        let again = f.stop_graph(s.execution, GraphStop::Terminated).await;
        assert_eq!(again, GraphStopped::AlreadyEnded);
        assert_eq!(f.graph_run(s.execution).await, before);
    }
}

/// What was never started here cannot be stopped here.
pub async fn of_an_unknown_one_is_not_found(f: Fixture) {
    let t = f.graph_site(1, diamond()).await;
    let claimed = f.running(&t).await;
    for execution in [fresh_id(), claimed.execution] {
        let stopped = f.stop_graph(execution, GraphStop::Cancelled).await;
        assert_eq!(stopped, GraphStopped::NotFound);
    }
    assert_eq!(f.slots(t.workspace).await.in_use, 1);
}

/// A request that was not DISPATCHED yet passes through every status on its way.
pub async fn before_it_was_dispatched_goes_through_every_status(f: Fixture) {
    let t = f.graph_site(1, diamond()).await;
    let claimed = f.claimed(&t).await;
    f.start_graph(&claimed).await;
    f.stop_graph(claimed.execution, GraphStop::Cancelled).await;
    let timeline = [
        (None, Pending, USER, None),
        (Some(Pending), Claimed, OWNER, None),
        (Some(Claimed), Dispatched, SETTLER, None),
        (Some(Dispatched), Failed, SETTLER, Some("cancelled")),
    ];
    f.assert_timeline(t.workspace, claimed.id, &timeline).await;
    graph_invariants::check(&f, &[Started::of(&t, &claimed)]).await;
}

/// Many stops at once are one.
pub async fn many_at_once_stop_it_once(f: Fixture) {
    let t = f.graph_site(10, diamond()).await;
    let all = f.started_many(&t, 10).await;
    f.take(5).await;
    let stops = (0..30).map(|n: usize| {
        let (store, execution) = (f.store.clone(), all[n % 10].execution);
        tokio::spawn(async move {
            let stop = GraphStop::Terminated;
            ok(store.graph_stop(execution, stop, SETTLER, "enough").await)
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
