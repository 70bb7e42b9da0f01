//! What a store promises about the end of a node: its record, the nodes that follow, the end of the execution.

use crate::Fixture;
use crate::factory::{LEASE, OWNER, USER, new_request, ok};
use crate::graph_factory::{Started, came_to, diamond, graph, graph_of, task, tried_task};
use crate::graph_invariants;
use crate::job_factory::{QUEUE, WORKER, all_end, completed, failed, job_ids, job_refs};
use crate::{job_wake, wake};
use leasehold_core::graph::NodeState;
use leasehold_core::job::{Again, JobEnd, JobFinish, JobFinished, JobRef};
use leasehold_core::limits::GRAPH_MAX_NODES;
use leasehold_core::{
    ExecutionEnd, ExecutionStatus, FailureReason, JobStatus, JsonText, RequestStatus,
};
use leasehold_store::graph::ABANDONED;
use leasehold_store::job::JobCancelled;
use leasehold_store::queue::QueueChange;
use leasehold_store::request::NewRequest;
use serde_json::{Value, json};
use std::time::Duration;

/// More ends than a runtime lets one task send without a pause.
const MANY: usize = 200;

use RequestStatus::{Claimed, Completed, Dispatched, Pending};

/// A diamond runs from its first node to its last: what follows is put into its queue when all before it has completed, and the
/// end of the last is the end of execution, request and slot.
pub async fn a_diamond_runs_to_its_end(f: Fixture) {
    let t = f.graph_site(1, diamond()).await;
    let s = f.started(&t).await;
    assert_eq!(f.letters(s.execution).await, "rwww");
    f.advance(1);
    f.complete_node("a", json!({"n": 1})).await;
    assert_eq!(f.letters(s.execution).await, "crrw");
    let jobs = f.take_nodes(&["b", "c"]).await;
    let answer = f.end(&jobs[1], came_to(json!("c"))).await;
    assert_eq!(answer, JobFinished::Completed);
    assert_eq!(f.letters(s.execution).await, "crcw");
    assert_eq!(f.take(10).await, []);
    f.end(&jobs[0], came_to(json!("b"))).await;
    assert_eq!(f.letters(s.execution).await, "cccr");
    assert_eq!(f.slots(t.workspace).await.in_use, 1);
    f.advance(1);
    f.complete_node("d", json!(null)).await;

    let run = f.graph_run(s.execution).await;
    assert_eq!(run.state.letters(), "cccc");
    assert_eq!(run.state.end(), Some(ExecutionEnd::Completed));
    assert_eq!((run.error, run.finished_at), (None, Some(f.now())));
    assert_eq!(f.slots(t.workspace).await.in_use, 0);
    let execution = f.execution(t.workspace, s.execution).await;
    let execution = execution.expect("it is kept");
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

/// A node is given the params and the outputs of the nodes right before it, and its own output is kept.
pub async fn outputs_are_kept_and_passed_on(f: Fixture) {
    let t = f.graph_site(1, diamond()).await;
    let s = f.started(&t).await;
    let input = |job: &leasehold_core::job::ClaimedJob| {
        let payload: Value = job.payload.read().expect("a payload is JSON");
        assert_eq!(payload["execution_id"], s.execution.to_string());
        assert_eq!(payload["workspace_id"], t.workspace.to_string());
        assert_eq!(payload["node_id"], job.kind);
        payload["input"].clone()
    };
    let a = f.take_nodes(&["a"]).await;
    let params = json!({"order": 7});
    assert_eq!(input(&a[0]), json!({"params": params, "nodes": {}}));
    f.end(&a[0], came_to(json!({"n": [1, 2]}))).await;
    let bc = f.take_nodes(&["b", "c"]).await;
    let expected = json!({"params": params, "nodes": {"a": {"n": [1, 2]}}});
    assert_eq!((input(&bc[0]), input(&bc[1])), (expected.clone(), expected));
    f.end(&bc[0], came_to(json!("from b"))).await;
    f.end(&bc[1], completed()).await;
    let d = f.take_nodes(&["d"]).await;
    let expected = json!({"params": params, "nodes": {"b": "from b", "c": null}});
    assert_eq!(input(&d[0]), expected);
    f.end(&d[0], came_to(json!(3))).await;

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

/// A claim that is given back was no attempt, however often that happens: a node that may be tried once is still there for whoever works on it.
pub async fn giving_a_nodes_job_back_costs_no_attempt(f: Fixture) {
    let t = f
        .graph_site(1, graph_of(vec![tried_task("a", 1)], &[]))
        .await;
    let s = f.started(&t).await;
    for _ in 0..5 {
        let job = f.take_one().await;
        assert_eq!(job.attempt, 1);
        let answer = f.end(&job, JobEnd::GivenBack).await;
        assert_eq!(answer, JobFinished::Queued { run_at: f.now() });
        assert_eq!(f.job(job.id).await.attempts, 0);
        assert_eq!(f.letters(s.execution).await, "r");
        assert_eq!(f.settle_graphs().await, []);
    }
    f.complete_node("a", json!(1)).await;
    assert_eq!(f.letters(s.execution).await, "c");
    assert_eq!(f.slots(t.workspace).await.in_use, 0);
    graph_invariants::check(&f, &[s]).await;
}

/// A node's job is not cancelled by itself, queued or running: its request can be.
pub async fn a_nodes_job_is_not_cancelled_by_itself(f: Fixture) {
    let t = f.graph_site(1, graph(&["a", "b"], &[])).await;
    let s = f.started(&t).await;
    f.take(1).await;
    for id in ["a", "b"] {
        let job = f.node(s.execution, id).await.job.expect("it was begun");
        let before = f.job(job).await;
        let cancelled = ok(f.store.job_cancel(job).await);
        assert_eq!(cancelled, JobCancelled::OfGraph);
        assert_eq!(f.job(job).await, before);
    }
    assert_eq!(f.letters(s.execution).await, "rr");
}

/// Whoever does not hold the lease ends nothing: another worker, an old token, an expired lease, a second time.
pub async fn without_the_lease_nothing_is_changed(f: Fixture) {
    let t = f.graph_site(1, graph(&["a", "b"], &[("a", "b")])).await;
    let s = f.started(&t).await;
    let job = f.take_one().await;
    let claim = job.claim();
    let other = JobRef {
        token: claim.token + 1,
        ..claim
    };
    for (worker, claim) in [("stranger", claim), (WORKER, other)] {
        let answer = f.end_as(worker, claim, completed()).await;
        assert_eq!(answer, JobFinished::LeaseLost);
    }
    f.advance(LEASE.as_secs());
    assert_eq!(f.end(&job, completed()).await, JobFinished::LeaseLost);
    assert_eq!(f.letters(s.execution).await, "rw");
    let taken_over = f.take_one().await;
    assert_eq!(f.end(&job, completed()).await, JobFinished::LeaseLost);
    assert_eq!(
        f.end(&taken_over, came_to(json!("mine"))).await,
        JobFinished::Completed
    );
    assert_eq!(
        f.end(&taken_over, completed()).await,
        JobFinished::LeaseLost
    );
    let output = f.node(s.execution, "a").await.output;
    assert_eq!(output, Some(JsonText::from(&json!("mine"))));
    assert_eq!(f.letters(s.execution).await, "cr");
    graph_invariants::check(&f, &[s]).await;
}

/// A failure whose lease is lost takes nothing from what the others of the call lead to.
pub async fn a_lost_failure_takes_nothing_from_the_others(f: Fixture) {
    let t = f
        .graph_site(1, graph(&["a", "b", "c"], &[("a", "c")]))
        .await;
    let params = json!({"kept": true});
    let request = NewRequest {
        params: params.clone(),
        ..new_request(&t)
    };
    let s = f.started_with(&t, request).await;
    let jobs = f.take(2).await;
    let of = |id: &str| {
        jobs.iter()
            .find(|job| job.kind == id)
            .expect("it was claimed")
    };
    let lost = JobRef {
        token: of("b").token + 1,
        ..of("b").claim()
    };
    let finishes = [
        JobFinish {
            claim: lost,
            end: failed(Again::Never),
        },
        JobFinish {
            claim: of("a").claim(),
            end: came_to(json!(1)),
        },
    ];
    let answers = f.end_all(WORKER, &finishes).await;
    assert_eq!(answers, [JobFinished::LeaseLost, JobFinished::Completed]);
    assert_eq!(f.letters(s.execution).await, "crr");
    let payload: Value = f
        .take_one()
        .await
        .payload
        .read()
        .expect("a payload is JSON");
    assert_eq!(payload["node_id"], "c");
    assert_eq!(
        payload["input"],
        json!({"params": params, "nodes": {"a": 1}})
    );
    graph_invariants::check(&f, &[s]).await;
}

/// Of two ends of one claim in a call the first counts.
pub async fn of_two_for_one_claim_the_first_counts(f: Fixture) {
    let t = f.graph_site(1, graph(&["a"], &[])).await;
    let s = f.started(&t).await;
    let claim = f.take_one().await.claim();
    let finishes = [came_to(json!(1)), failed(Again::Never)].map(|end| JobFinish { claim, end });
    let answers = f.end_all(WORKER, &finishes).await;
    assert_eq!(answers, [JobFinished::Completed, JobFinished::LeaseLost]);
    assert_eq!(f.letters(s.execution).await, "c");
    graph_invariants::check(&f, &[s]).await;
}

/// Trying again, snoozing and giving back are the job's matter: the graph stays where it is.
pub async fn coming_back_is_only_the_jobs_matter(f: Fixture) {
    let t = f.graph_site(1, graph(&["a"], &[])).await;
    let s = f.started(&t).await;
    for (end, seconds) in [
        (failed(Again::After(Duration::from_secs(5))), 5),
        (JobEnd::Snoozed(Duration::from_secs(3)), 3),
        (JobEnd::GivenBack, 0),
    ] {
        let job = f.take_one().await;
        let answer = f.end(&job, end).await;
        let run_at = f.now() + Duration::from_secs(seconds);
        assert_eq!(answer, JobFinished::Queued { run_at });
        assert_eq!(f.letters(s.execution).await, "r");
        f.advance(seconds);
    }
    f.complete_node("a", json!(1)).await;
    let node = f.node(s.execution, "a").await;
    assert_eq!((node.state, node.attempts), (NodeState::Completed, 2));
    graph_invariants::check(&f, &[s]).await;
}

/// A node that failed for good ends the execution: siblings are no longer wanted, and the error names the node.
pub async fn a_failed_node_fails_the_execution(f: Fixture) {
    for exhausted in [false, true] {
        let nodes = vec![
            tried_task("bad", 2),
            task("leased"),
            task("queued"),
            task("next"),
        ];
        let t = f.graph_site(1, graph_of(nodes, &[("bad", "next")])).await;
        let s = f.started(&t).await;
        let mut jobs = f.take(2).await;
        if exhausted {
            let again = f.end(&jobs[0], failed(Again::Policy)).await;
            assert_eq!(again, JobFinished::Queued { run_at: f.now() });
            jobs[0] = f.take(1).await.remove(0);
        }
        let again = if exhausted {
            Again::Policy
        } else {
            Again::Never
        };
        assert_eq!(f.end(&jobs[0], failed(again)).await, JobFinished::Failed);
        let run = f.graph_run(s.execution).await;
        let error = Some("node `bad` failed: it broke");
        assert_eq!(
            (run.state.letters().as_str(), run.error.as_deref()),
            ("fxxx", error)
        );
        assert_eq!(f.keep(WORKER, &job_refs(&jobs)).await, []);
        let lost = f.end(&jobs[1], completed()).await;
        assert_eq!(lost, JobFinished::LeaseLost);
        assert_eq!(f.take(10).await, []);
        let node = f.node(s.execution, "queued").await;
        let queued = f.job(node.job.expect("it was begun")).await;
        assert_eq!(queued.status, JobStatus::Failed);
        assert_eq!(queued.last_error.as_deref(), Some(ABANDONED));
        let bad = f.node(s.execution, "bad").await;
        assert_eq!(bad.attempts, if exhausted { 2 } else { 1 });
        assert_eq!(bad.error.as_deref(), Some("it broke"));
        let request = f.request(t.workspace, s.request).await;
        assert_eq!(request.status, RequestStatus::Failed);
        assert_eq!(request.failure_reason, Some(FailureReason::ExecutionFailed));
        assert_eq!(request.last_error.as_deref(), error);
        assert_eq!(f.slots(t.workspace).await.in_use, 0);
        graph_invariants::check(&f, &[s]).await;
        crate::job_invariants::check(&f).await;
    }
}

/// What one end of a call does to a graph, the next one of the call sees.
pub async fn ends_of_one_call_follow_each_other(f: Fixture) {
    let nodes = ["a", "b", "c", "d"];
    let t = f
        .graph_site(2, graph(&nodes, &[("a", "d"), ("b", "d")]))
        .await;
    let all = f.started_many(&t, 2).await;
    let jobs = f.take(10).await;
    let mut finishes = all_end(&jobs, &completed());
    finishes[1].end = failed(Again::Never);
    let answers = f.end_all(WORKER, &finishes).await;
    let (done, lost) = (JobFinished::Completed, JobFinished::LeaseLost);
    assert_eq!(answers, [done, JobFinished::Failed, lost, done, done, done]);
    assert_eq!(f.letters(all[0].execution).await, "cfxx");
    assert_eq!(f.letters(all[1].execution).await, "cccr");
    graph_invariants::check(&f, &all).await;
    f.complete_node("d", json!(1)).await;
    assert_eq!(f.slots(t.workspace).await.in_use, 0);
    graph_invariants::check(&f, &all).await;
}

/// The order asked holds for many ends of one graph too.
pub async fn many_ends_of_one_call_follow_each_other(f: Fixture) {
    let names: Vec<String> = (0..MANY).map(|n| format!("n{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let t = f.graph_site(1, graph(&names, &[])).await;
    let s = f.started(&t).await;
    let jobs = f.take(250).await;
    assert_eq!(jobs.len(), MANY);
    let mut finishes = all_end(&jobs, &completed());
    finishes.reverse();
    let fails = MANY / 2;
    finishes[fails].end = failed(Again::Never);
    let answers = f.end_all(WORKER, &finishes).await;
    let mut expected = vec![JobFinished::Completed; fails];
    expected.push(JobFinished::Failed);
    expected.resize(MANY, JobFinished::LeaseLost);
    assert_eq!(answers, expected);
    graph_invariants::check(&f, &[s]).await;
}

/// Nodes that nobody worked on go back into their queue before the others of the call end.
pub async fn nodes_go_back_before_others_of_the_call_end(f: Fixture) {
    let t = f.graph_site(2, graph(&["a", "b", "c"], &[])).await;
    let all = f.started_many(&t, 2).await;
    let jobs = f.take(10).await;
    let mut finishes = all_end(&jobs, &JobEnd::GivenBack);
    finishes[0].end = failed(Again::Never);
    finishes[2].end = JobEnd::Snoozed(Duration::from_secs(5));
    finishes.insert(
        4,
        JobFinish {
            end: completed(),
            ..finishes[3].clone()
        },
    );
    let answers = f.end_all(WORKER, &finishes).await;
    let now = JobFinished::Queued { run_at: f.now() };
    let later = JobFinished::Queued {
        run_at: f.now() + Duration::from_secs(5),
    };
    let (failed, lost) = (JobFinished::Failed, JobFinished::LeaseLost);
    assert_eq!(answers, [failed, now, later, now, lost, now, now]);
    assert_eq!(f.letters(all[0].execution).await, "fxx");
    assert_eq!(f.letters(all[1].execution).await, "rrr");
    let again = f.take(10).await;
    assert_eq!(job_ids(&again), job_ids(&jobs[3..]));
    assert!(again.iter().all(|job| job.attempt == 1));
    graph_invariants::check(&f, &all).await;
    crate::job_invariants::check(&f).await;
}

/// A node whose input cannot be made fails, and with it the execution; what was begun beside it is no longer wanted.
pub async fn a_node_without_its_input_fails_the_execution(f: Fixture) {
    let bad = serde_json::from_value(json!({"id": "bad", "type": "task", "queue": QUEUE,
        "input": {"$from": "/nodes/a/nowhere"}}));
    let nodes = vec![
        task("a"),
        bad.expect("it is a node"),
        task("next"),
        task("beside"),
    ];
    let t = f
        .graph_site(1, graph_of(nodes, &[("a", "bad"), ("a", "next")]))
        .await;
    let s = f.started(&t).await;
    let jobs = f.take_nodes(&["a", "beside"]).await;
    let answer = f.end(&jobs[0], came_to(json!({"here": 1}))).await;
    assert_eq!(answer, JobFinished::Completed);
    assert_eq!(f.letters(s.execution).await, "cfxx");
    let bad = f.node(s.execution, "bad").await;
    assert_eq!((bad.job, bad.attempts), (None, 0));
    let error = f.graph_run(s.execution).await.error.expect("it says why");
    assert!(error.starts_with("node `bad` failed: "), "{error}");
    assert_eq!(f.keep(WORKER, &job_refs(&jobs)).await, []);
    assert_eq!(f.take(10).await, []);
    assert_eq!(f.slots(t.workspace).await.in_use, 0);
    graph_invariants::check(&f, &[s]).await;
}

/// An end that comes before DISPATCHED was written moves the request through every status.
pub async fn an_end_before_dispatched_goes_through_every_status(f: Fixture) {
    let t = f.graph_site(2, graph(&["a"], &[])).await;
    let claimed = f.claimed(&t).await;
    f.start_graph(&claimed).await;
    f.complete_node("a", json!(1)).await;
    let timeline = [
        (None, Pending, USER, None),
        (Some(Pending), Claimed, OWNER, None),
        (Some(Claimed), Dispatched, WORKER, None),
        (Some(Dispatched), Completed, WORKER, None),
    ];
    f.assert_timeline(t.workspace, claimed.id, &timeline).await;
    let kept = f.kept(&t).await;
    f.start_graph(&kept).await;
    f.complete_node("a", json!(1)).await;
    let request = f.request(t.workspace, kept.id).await;
    assert_eq!(request.status, Completed);
    assert_eq!(f.slots(t.workspace).await.in_use, 0);
    let all = [Started::of(&t, &claimed), Started::of(&t, &kept)];
    graph_invariants::check(&f, &all).await;
}

/// A queue that keeps no completed jobs keeps the outputs of nodes all the same.
pub async fn a_queue_that_keeps_nothing_keeps_outputs(f: Fixture) {
    f.set_queue(QueueChange {
        keep_completed: Some(false),
        ..QueueChange::default()
    })
    .await;
    let t = f.graph_site(1, graph(&["a", "b"], &[("a", "b")])).await;
    let s = f.started(&t).await;
    f.complete_node("a", json!("kept")).await;
    f.complete_node("b", json!(2)).await;
    let a = f.node(s.execution, "a").await;
    assert_eq!(a.output, Some(JsonText::from(&json!("kept"))));
    assert_eq!(a.attempts, 1);
    assert_eq!(f.letters(s.execution).await, "cc");
    assert_eq!(ok(f.store.job_get(a.job.expect("it had one")).await), None);
}

/// The largest graph there may be: one node, then all but two at once, then one.
pub async fn a_thousand_nodes_run_to_their_end(f: Fixture) {
    let wide: Vec<String> = (0..GRAPH_MAX_NODES - 2).map(|n| format!("n{n}")).collect();
    let mut nodes = vec!["first"];
    nodes.extend(wide.iter().map(String::as_str));
    nodes.push("last");
    let mut edges = Vec::new();
    for node in &wide {
        edges.extend([("first", node.as_str()), (node.as_str(), "last")]);
    }
    let t = f.graph_site(1, graph(&nodes, &edges)).await;
    let s = f.started(&t).await;
    f.complete_node("first", json!(0)).await;
    let mut done = 0;
    loop {
        let jobs = f.take(250).await;
        let answers = f.end_all(WORKER, &all_end(&jobs, &came_to(json!(1)))).await;
        assert!(
            answers
                .iter()
                .all(|answer| *answer == JobFinished::Completed)
        );
        done += jobs.len();
        if jobs.is_empty() {
            break;
        }
    }
    assert_eq!(done, GRAPH_MAX_NODES - 1);
    let run = f.graph_run(s.execution).await;
    assert_eq!(run.state.end(), Some(ExecutionEnd::Completed));
    graph_invariants::check(&f, &[s]).await;
}

/// New nodes ring for workers, and the end of the last for dispatchers.
pub async fn nodes_ring_for_workers_and_the_end_for_dispatchers(f: Fixture) {
    let t = f.graph_site(1, graph(&["a", "b"], &[("a", "b")])).await;
    let s = f.started(&t).await;
    let job = f.take_one().await;
    job_wake::assert_wakes(&f, "the next node", f.end(&job, completed())).await;
    let job = f.take_one().await;
    wake::assert_wakes(&f, "a freed slot", f.end(&job, completed())).await;
    assert_eq!(f.letters(s.execution).await, "cc");
}
