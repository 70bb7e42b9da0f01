//! The end of a node: its record, its successors, the end of the execution.

use crate::Fixture;
use crate::factory::{LEASE, OWNER, USER, new_request, ok};
use crate::graph_factory::{
    StartedGraph, completed_with, diamond, graph, graph_of, task, task_with_max_attempts,
};
use crate::graph_invariants;
use crate::job_factory::{QUEUE, WORKER, completed, failed, finish_each, job_ids, job_refs};
use leasehold_core::graph::NodeState;
use leasehold_core::job::{JobEnd, JobFinish, JobFinished, JobRef, RetryMode};
use leasehold_core::{
    ExecutionEnd, ExecutionStatus, FailureReason, JobStatus, JsonText, RequestStatus,
};
use leasehold_store::graph::ABANDONED;
use leasehold_store::job::JobCancelled;
use leasehold_store::queue::QueueChange;
use leasehold_store::request::NewRequest;
use serde_json::{Value, json};
use std::time::Duration;

/// More ends than one task can send before the runtime makes it yield.
const MANY: usize = 200;

use RequestStatus::{Claimed, Completed, Dispatched, Pending};

/// In a diamond, a node is enqueued when all its predecessors have completed, and the end of the last node ends execution and request and frees the
/// slot.
pub async fn diamond_runs_to_its_end(f: Fixture) {
    let t = f.graph_workspace(1, diamond()).await;
    let s = f.enqueue_started(&t).await;
    assert_eq!(f.node_letters(s.execution).await, "rwww");
    f.advance(1);
    f.complete_node("a", json!({"n": 1})).await;
    assert_eq!(f.node_letters(s.execution).await, "crrw");
    let jobs = f.claim_nodes(&["b", "c"]).await;
    let answer = f.finish_job(&jobs[1], completed_with(json!("c"))).await;
    assert_eq!(answer, JobFinished::Completed);
    assert_eq!(f.node_letters(s.execution).await, "crcw");
    assert_eq!(f.claim_jobs(10).await, []);
    f.finish_job(&jobs[0], completed_with(json!("b"))).await;
    assert_eq!(f.node_letters(s.execution).await, "cccr");
    assert_eq!(f.slots(t.workspace).await.in_use, 1);
    f.advance(1);
    f.complete_node("d", json!(null)).await;

    let run = f.graph_run(s.execution).await;
    assert_eq!(run.state.letters(), "cccc");
    assert_eq!(run.state.end(), Some(ExecutionEnd::Completed));
    assert_eq!((run.error, run.finished_at), (None, Some(f.now())));
    assert_eq!(f.slots(t.workspace).await.in_use, 0);
    let execution = f.execution(t.workspace, s.execution).await;
    let execution = execution.expect("the execution is kept");
    assert_eq!(execution.status, ExecutionStatus::Completed);
    let timeline = [
        (None, Pending, USER, None),
        (Some(Pending), Claimed, OWNER, None),
        (Some(Claimed), Dispatched, OWNER, None),
        (Some(Dispatched), Completed, WORKER, None),
    ];
    f.assert_timeline(t.workspace, s.request, &timeline).await;
    graph_invariants::check(&f, &[s]).await;
}

/// A node gets the params and the outputs of its direct predecessors, and its own output is stored.
pub async fn outputs_are_stored_and_passed_on(f: Fixture) {
    let t = f.graph_workspace(1, diamond()).await;
    let s = f.enqueue_started(&t).await;
    let input = |job: &leasehold_core::job::ClaimedJob| {
        let payload: Value = job.payload.read().expect("the payload is JSON");
        assert_eq!(payload["execution_id"], s.execution.to_string());
        assert_eq!(payload["workspace_id"], t.workspace.to_string());
        assert_eq!(payload["node_id"], job.kind);
        payload["input"].clone()
    };
    let a = f.claim_nodes(&["a"]).await;
    let params = json!({"order": 7});
    assert_eq!(input(&a[0]), json!({"params": params, "nodes": {}}));
    f.finish_job(&a[0], completed_with(json!({"n": [1, 2]})))
        .await;
    let bc = f.claim_nodes(&["b", "c"]).await;
    let expected = json!({"params": params, "nodes": {"a": {"n": [1, 2]}}});
    assert_eq!((input(&bc[0]), input(&bc[1])), (expected.clone(), expected));
    f.finish_job(&bc[0], completed_with(json!("from b"))).await;
    f.finish_job(&bc[1], completed()).await;
    let d = f.claim_nodes(&["d"]).await;
    let expected = json!({"params": params, "nodes": {"b": "from b", "c": null}});
    assert_eq!(input(&d[0]), expected);
    f.finish_job(&d[0], completed_with(json!(3))).await;

    let nodes = f.nodes(s.execution).await;
    let outputs: Vec<_> = nodes.iter().map(|node| node.output.clone()).collect();
    let kept = |value: Value| Some(JsonText::from(&value));
    let expected = [
        kept(json!({"n": [1, 2]})),
        kept(json!("from b")),
        kept(json!(null)),
        kept(json!(3)),
    ];
    assert_eq!(outputs, expected);
    assert!(nodes.iter().all(|node| node.state == NodeState::Completed));
}

/// Returning a node's job costs no attempt, however often: a node with one attempt can still be claimed.
pub async fn returning_a_nodes_job_costs_no_attempt(f: Fixture) {
    let t = f
        .graph_workspace(1, graph_of(vec![task_with_max_attempts("a", 1)], &[]))
        .await;
    let s = f.enqueue_started(&t).await;
    for _ in 0..5 {
        let job = f.claim_job().await;
        assert_eq!(job.attempt, 1);
        let answer = f.finish_job(&job, JobEnd::Returned).await;
        assert_eq!(answer, JobFinished::Queued { run_at: f.now() });
        assert_eq!(f.job(job.id).await.attempts, 0);
        assert_eq!(f.node_letters(s.execution).await, "r");
        assert_eq!(f.expire_graphs().await, []);
    }
    f.complete_node("a", json!(1)).await;
    assert_eq!(f.node_letters(s.execution).await, "c");
    assert_eq!(f.slots(t.workspace).await.in_use, 0);
    graph_invariants::check(&f, &[s]).await;
}

/// A node's job cannot be cancelled, queued or running; cancel its request instead.
pub async fn job_of_a_node_cannot_be_cancelled(f: Fixture) {
    let t = f.graph_workspace(1, graph(&["a", "b"], &[])).await;
    let s = f.enqueue_started(&t).await;
    f.claim_jobs(1).await;
    for id in ["a", "b"] {
        let job = f
            .node(s.execution, id)
            .await
            .job
            .expect("the node was started");
        let before = f.job(job).await;
        let cancelled = ok(f.store.job_cancel(job).await);
        assert_eq!(cancelled, JobCancelled::OfGraph);
        assert_eq!(f.job(job).await, before);
    }
    assert_eq!(f.node_letters(s.execution).await, "rr");
}

/// A finish without the lease changes nothing: another worker, an old token, an expired lease, a repeated finish.
pub async fn finish_without_the_lease_changes_nothing(f: Fixture) {
    let t = f
        .graph_workspace(1, graph(&["a", "b"], &[("a", "b")]))
        .await;
    let s = f.enqueue_started(&t).await;
    let job = f.claim_job().await;
    let claim = job.claim();
    let other = JobRef {
        token: claim.token + 1,
        ..claim
    };
    for (worker, claim) in [("stranger", claim), (WORKER, other)] {
        let answer = f.finish_job_as(worker, claim, completed()).await;
        assert_eq!(answer, JobFinished::LeaseLost);
    }
    f.advance(LEASE.as_secs());
    assert_eq!(
        f.finish_job(&job, completed()).await,
        JobFinished::LeaseLost
    );
    assert_eq!(f.node_letters(s.execution).await, "rw");
    let taken_over = f.claim_job().await;
    assert_eq!(
        f.finish_job(&job, completed()).await,
        JobFinished::LeaseLost
    );
    assert_eq!(
        f.finish_job(&taken_over, completed_with(json!("mine")))
            .await,
        JobFinished::Completed
    );
    assert_eq!(
        f.finish_job(&taken_over, completed()).await,
        JobFinished::LeaseLost
    );
    let output = f.node(s.execution, "a").await.output;
    assert_eq!(output, Some(JsonText::from(&json!("mine"))));
    assert_eq!(f.node_letters(s.execution).await, "cr");
    graph_invariants::check(&f, &[s]).await;
}

/// A failure with a lost lease does not affect the other finishes of the call.
pub async fn failure_with_a_lost_lease_does_not_affect_the_others(f: Fixture) {
    let t = f
        .graph_workspace(1, graph(&["a", "b", "c"], &[("a", "c")]))
        .await;
    let params = json!({"kept": true});
    let request = NewRequest {
        params: params.clone().into(),
        ..new_request(&t)
    };
    let s = f.enqueue_started_with(&t, request).await;
    let jobs = f.claim_jobs(2).await;
    let of = |id: &str| {
        jobs.iter()
            .find(|job| job.kind == id)
            .expect("the job was claimed")
    };
    let lost = JobRef {
        token: of("b").token + 1,
        ..of("b").claim()
    };
    let finishes = [
        JobFinish {
            claim: lost,
            end: failed(RetryMode::Never),
        },
        JobFinish {
            claim: of("a").claim(),
            end: completed_with(json!(1)),
        },
    ];
    let answers = f.finish_jobs(WORKER, &finishes).await;
    assert_eq!(answers, [JobFinished::LeaseLost, JobFinished::Completed]);
    assert_eq!(f.node_letters(s.execution).await, "crr");
    let payload: Value = f
        .claim_job()
        .await
        .payload
        .read()
        .expect("the payload is JSON");
    assert_eq!(payload["node_id"], "c");
    assert_eq!(
        payload["input"],
        json!({"params": params, "nodes": {"a": 1}})
    );
    graph_invariants::check(&f, &[s]).await;
}

/// Of two ends of one claim in a call, the first counts.
pub async fn first_of_two_ends_counts(f: Fixture) {
    let t = f.graph_workspace(1, graph(&["a"], &[])).await;
    let s = f.enqueue_started(&t).await;
    let claim = f.claim_job().await.claim();
    let finishes =
        [completed_with(json!(1)), failed(RetryMode::Never)].map(|end| JobFinish { claim, end });
    let answers = f.finish_jobs(WORKER, &finishes).await;
    assert_eq!(answers, [JobFinished::Completed, JobFinished::LeaseLost]);
    assert_eq!(f.node_letters(s.execution).await, "c");
    graph_invariants::check(&f, &[s]).await;
}

/// A retry, a snooze and a return change only the job, not the graph.
pub async fn retry_snooze_and_return_leave_the_graph_unchanged(f: Fixture) {
    let t = f.graph_workspace(1, graph(&["a"], &[])).await;
    let s = f.enqueue_started(&t).await;
    for (end, seconds) in [
        (failed(RetryMode::After(Duration::from_secs(5))), 5),
        (JobEnd::Snoozed(Duration::from_secs(3)), 3),
        (JobEnd::Returned, 0),
    ] {
        let job = f.claim_job().await;
        let answer = f.finish_job(&job, end).await;
        let run_at = f.now() + Duration::from_secs(seconds);
        assert_eq!(answer, JobFinished::Queued { run_at });
        assert_eq!(f.node_letters(s.execution).await, "r");
        f.advance(seconds);
    }
    f.complete_node("a", json!(1)).await;
    let node = f.node(s.execution, "a").await;
    assert_eq!((node.state, node.attempts), (NodeState::Completed, 2));
    graph_invariants::check(&f, &[s]).await;
}

/// A permanently failed node fails the execution and cancels its siblings, and the error names the node.
pub async fn failed_node_fails_the_execution(f: Fixture) {
    for exhausted in [false, true] {
        let nodes = vec![
            task_with_max_attempts("bad", 2),
            task("leased"),
            task("queued"),
            task("next"),
        ];
        let t = f
            .graph_workspace(1, graph_of(nodes, &[("bad", "next")]))
            .await;
        let s = f.enqueue_started(&t).await;
        let mut jobs = f.claim_jobs(2).await;
        if exhausted {
            let again = f.finish_job(&jobs[0], failed(RetryMode::Policy)).await;
            assert_eq!(again, JobFinished::Queued { run_at: f.now() });
            jobs[0] = f.claim_jobs(1).await.remove(0);
        }
        let retry_mode = if exhausted {
            RetryMode::Policy
        } else {
            RetryMode::Never
        };
        assert_eq!(
            f.finish_job(&jobs[0], failed(retry_mode)).await,
            JobFinished::Failed
        );
        let run = f.graph_run(s.execution).await;
        let error = Some("node `bad` failed: it broke");
        assert_eq!(
            (run.state.letters().as_str(), run.error.as_deref()),
            ("fxxx", error)
        );
        assert_eq!(f.renew_jobs(WORKER, &job_refs(&jobs)).await, []);
        let lost = f.finish_job(&jobs[1], completed()).await;
        assert_eq!(lost, JobFinished::LeaseLost);
        assert_eq!(f.claim_jobs(10).await, []);
        let node = f.node(s.execution, "leased").await;
        let leased = f.job(node.job.expect("the node was claimed")).await;
        assert_eq!(leased.status, JobStatus::Failed);
        assert_eq!(leased.last_error.as_deref(), Some(ABANDONED));
        let node = f.node(s.execution, "queued").await;
        assert_eq!((node.state, node.job), (NodeState::Cancelled, None));
        assert_eq!(node.finished_at, run.finished_at);
        let bad = f.node(s.execution, "bad").await;
        assert_eq!(bad.attempts, if exhausted { 2 } else { 1 });
        assert_eq!(bad.error.as_deref(), Some("it broke"));
        let request = f.request(t.workspace, s.request).await;
        assert_eq!(request.status, RequestStatus::Failed);
        assert_eq!(
            request.failure_reason,
            Some(FailureReason::ExecutionFailed.into())
        );
        assert_eq!(request.last_error.as_deref(), error);
        assert_eq!(f.slots(t.workspace).await.in_use, 0);
        graph_invariants::check(&f, &[s]).await;
        crate::job_invariants::check(&f).await;
    }
}

/// Each end of a call sees the effects of those before it.
pub async fn ends_of_one_call_apply_in_order(f: Fixture) {
    let nodes = ["a", "b", "c", "d"];
    let t = f
        .graph_workspace(2, graph(&nodes, &[("a", "d"), ("b", "d")]))
        .await;
    let all = f.enqueue_started_many(&t, 2).await;
    let jobs = f.claim_jobs(10).await;
    let mut finishes = finish_each(&jobs, &completed());
    finishes[1].end = failed(RetryMode::Never);
    let answers = f.finish_jobs(WORKER, &finishes).await;
    let (done, lost) = (JobFinished::Completed, JobFinished::LeaseLost);
    assert_eq!(answers, [done, JobFinished::Failed, lost, done, done, done]);
    assert_eq!(f.node_letters(all[0].execution).await, "cfxx");
    assert_eq!(f.node_letters(all[1].execution).await, "cccr");
    graph_invariants::check(&f, &all).await;
    f.complete_node("d", json!(1)).await;
    assert_eq!(f.slots(t.workspace).await.in_use, 0);
    graph_invariants::check(&f, &all).await;
}

/// The order also holds for many ends of one graph.
pub async fn many_ends_of_one_graph_apply_in_order(f: Fixture) {
    let names: Vec<String> = (0..MANY).map(|n| format!("n{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let t = f.graph_workspace(1, graph(&names, &[])).await;
    let s = f.enqueue_started(&t).await;
    let jobs = f.claim_jobs(250).await;
    assert_eq!(jobs.len(), MANY);
    let mut finishes = finish_each(&jobs, &completed());
    finishes.reverse();
    let fails = MANY / 2;
    finishes[fails].end = failed(RetryMode::Never);
    let answers = f.finish_jobs(WORKER, &finishes).await;
    let mut expected = vec![JobFinished::Completed; fails];
    expected.push(JobFinished::Failed);
    expected.resize(MANY, JobFinished::LeaseLost);
    assert_eq!(answers, expected);
    graph_invariants::check(&f, &[s]).await;
}

/// Returned nodes are requeued before the other ends of the call apply.
pub async fn returned_nodes_are_requeued_before_other_ends(f: Fixture) {
    let t = f.graph_workspace(2, graph(&["a", "b", "c"], &[])).await;
    let all = f.enqueue_started_many(&t, 2).await;
    let jobs = f.claim_jobs(10).await;
    let mut finishes = finish_each(&jobs, &JobEnd::Returned);
    finishes[0].end = failed(RetryMode::Never);
    finishes[2].end = JobEnd::Snoozed(Duration::from_secs(5));
    finishes.insert(
        4,
        JobFinish {
            end: completed(),
            ..finishes[3].clone()
        },
    );
    let answers = f.finish_jobs(WORKER, &finishes).await;
    let now = JobFinished::Queued { run_at: f.now() };
    let later = JobFinished::Queued {
        run_at: f.now() + Duration::from_secs(5),
    };
    let (failed, lost) = (JobFinished::Failed, JobFinished::LeaseLost);
    assert_eq!(answers, [failed, now, later, now, lost, now, now]);
    assert_eq!(f.node_letters(all[0].execution).await, "fxx");
    assert_eq!(f.node_letters(all[1].execution).await, "rrr");
    let again = f.claim_jobs(10).await;
    assert_eq!(job_ids(&again), job_ids(&jobs[3..]));
    assert!(again.iter().all(|job| job.attempt == 1));
    graph_invariants::check(&f, &all).await;
    crate::job_invariants::check(&f).await;
}

/// A node whose input cannot be resolved fails the execution and cancels the nodes beside it.
pub async fn node_with_missing_input_fails_the_execution(f: Fixture) {
    let bad = serde_json::from_value(json!({"id": "bad", "type": "task", "queue": QUEUE,
        "input": {"$from": "/nodes/a/nowhere"}}));
    let nodes = vec![
        task("a"),
        bad.expect("the job belongs to a node"),
        task("next"),
        task("beside"),
    ];
    let t = f
        .graph_workspace(1, graph_of(nodes, &[("a", "bad"), ("a", "next")]))
        .await;
    let s = f.enqueue_started(&t).await;
    let jobs = f.claim_nodes(&["a", "beside"]).await;
    let answer = f
        .finish_job(&jobs[0], completed_with(json!({"here": 1})))
        .await;
    assert_eq!(answer, JobFinished::Completed);
    assert_eq!(f.node_letters(s.execution).await, "cfxx");
    let bad = f.node(s.execution, "bad").await;
    assert_eq!((bad.job, bad.attempts), (None, 0));
    let error = f
        .graph_run(s.execution)
        .await
        .error
        .expect("the error is set");
    assert!(error.starts_with("node `bad` failed: "), "{error}");
    assert_eq!(f.renew_jobs(WORKER, &job_refs(&jobs)).await, []);
    assert_eq!(f.claim_jobs(10).await, []);
    assert_eq!(f.slots(t.workspace).await.in_use, 0);
    graph_invariants::check(&f, &[s]).await;
}

/// An end before DISPATCHED is recorded moves the request through every status.
pub async fn end_before_dispatched_passes_through_every_status(f: Fixture) {
    let t = f.graph_workspace(2, graph(&["a"], &[])).await;
    let claimed = f.enqueue_claimed(&t).await;
    f.start_graph(&claimed).await;
    f.complete_node("a", json!(1)).await;
    let timeline = [
        (None, Pending, USER, None),
        (Some(Pending), Claimed, OWNER, None),
        (Some(Claimed), Dispatched, WORKER, None),
        (Some(Dispatched), Completed, WORKER, None),
    ];
    f.assert_timeline(t.workspace, claimed.id, &timeline).await;
    let kept = f.enqueue_unknown(&t).await;
    f.start_graph(&kept).await;
    f.complete_node("a", json!(1)).await;
    let request = f.request(t.workspace, kept.id).await;
    assert_eq!(request.status, Completed);
    assert_eq!(f.slots(t.workspace).await.in_use, 0);
    let all = [StartedGraph::of(&t, &claimed), StartedGraph::of(&t, &kept)];
    graph_invariants::check(&f, &all).await;
}

/// Outputs of nodes are kept also if the queue does not keep completed jobs.
pub async fn outputs_are_kept_if_the_queue_deletes_completed_jobs(f: Fixture) {
    f.set_queue(QueueChange {
        keep_completed: Some(false),
        ..QueueChange::default()
    })
    .await;
    let t = f
        .graph_workspace(1, graph(&["a", "b"], &[("a", "b")]))
        .await;
    let s = f.enqueue_started(&t).await;
    f.complete_node("a", json!("kept")).await;
    f.complete_node("b", json!(2)).await;
    let a = f.node(s.execution, "a").await;
    assert_eq!(a.output, Some(JsonText::from(&json!("kept"))));
    assert_eq!(a.attempts, 1);
    assert_eq!(f.node_letters(s.execution).await, "cc");
    assert_eq!(
        ok(f.store
            .job_get(a.job.expect("the node has an output"))
            .await),
        None
    );
}
