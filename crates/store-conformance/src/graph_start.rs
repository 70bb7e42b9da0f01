//! What a store promises about the start of a graph.

use crate::Fixture;
use crate::factory::{new_request, ok};
use crate::graph_factory::{Started, diamond, graph, graph_of, task, tried_task};
use crate::graph_invariants;
use crate::job_factory::QUEUE;
use leasehold_core::graph::{GraphStop, HttpCall, Node, NodeState};
use leasehold_core::queue::{DELAY_NODES, HTTP_NODES};
use leasehold_core::{ExecutionEnd, FailureReason, JobStatus, RequestStatus};
use leasehold_store::fresh_id;
use leasehold_store::graph::{EndedExecution, GraphRun, GraphStart, GraphStarted};
use leasehold_store::job::JobFilter;
use leasehold_store::request::NewRequest;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

fn node(value: Value) -> Node {
    serde_json::from_value(value).expect("it is a node")
}

/// The nodes that wait for nothing become jobs, with the priority of the request; the others wait.
pub async fn puts_the_first_nodes_into_their_queues(f: Fixture) {
    let t = f
        .graph_site(1, graph(&["a", "b", "c"], &[("a", "c"), ("b", "c")]))
        .await;
    let request = NewRequest {
        priority: 7,
        ..new_request(&t)
    };
    let s = f.started_with(&t, request).await;
    let run = f.graph_run(s.execution).await;
    let expected = GraphRun {
        execution: s.execution,
        state: run.state.clone(),
        error: None,
        started_at: f.now(),
        finished_at: None,
    };
    assert_eq!(run, expected);
    assert_eq!(
        (run.state.letters().as_str(), run.state.end()),
        ("rrw", None)
    );
    let jobs = f.all_jobs(&JobFilter::default(), 10).await;
    let kinds: Vec<&str> = jobs.iter().map(|job| job.kind.as_str()).collect();
    assert_eq!(kinds, ["b", "a"], "in the order of the graph");
    for job in jobs {
        assert_eq!((job.queue.as_str(), job.status), (QUEUE, JobStatus::Queued));
        assert_eq!((job.priority, job.execution), (7, Some(s.execution)));
        assert_eq!(f.job(job.id).await, job);
        let node = f.node(s.execution, &job.kind).await;
        assert_eq!(node.job, Some(job.id));
        assert_eq!(node.started_at, Some(f.now()));
    }
    graph_invariants::check(&f, &[s]).await;
}

/// What a node says of its retries and its timeout goes before what its queue says.
pub async fn a_nodes_own_retry_and_timeout_hold(f: Fixture) {
    let own = Node {
        timeout: Some(Duration::from_millis(250)),
        ..tried_task("own", 3)
    };
    let t = f
        .graph_site(1, graph_of(vec![own, task("plain")], &[]))
        .await;
    f.started(&t).await;
    let jobs = f.take_nodes(&["own", "plain"]).await;
    assert_eq!(jobs[0].retry.max_attempts, 3);
    assert_eq!(jobs[0].retry.backoff.base, Duration::ZERO);
    assert_eq!(jobs[0].timeout, Some(Duration::from_millis(250)));
    assert_eq!(jobs[1].timeout, None);
}

/// A call and a pause are jobs of Leasehold's own queues; a pause is due when it is over.
pub async fn calls_and_pauses_have_queues_of_their_own(f: Fixture) {
    let call = node(json!({"id": "call", "type": "http", "method": "POST",
        "url": "https://example.com/orders/{/params/order}", "timeout_ms": 1_500}));
    let pause = node(json!({"id": "pause", "type": "delay", "milliseconds": 60_000}));
    let t = f.graph_site(1, graph_of(vec![call, pause], &[])).await;
    let s = f.started(&t).await;
    let calls = f.take_from(HTTP_NODES, 10).await.jobs;
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].timeout, Some(Duration::from_millis(1_500)));
    let call: HttpCall = calls[0].payload.read().expect("a call is in it");
    assert_eq!(call.url, "https://example.com/orders/7");
    assert!(call.idempotency_key.contains(&s.execution.to_string()));
    let pauses = f.take_from(DELAY_NODES, 10).await;
    assert_eq!(pauses.jobs, []);
    assert_eq!(pauses.next_due_in, Some(Duration::from_secs(60)));
    f.advance(60);
    assert_eq!(f.take_from(DELAY_NODES, 10).await.jobs.len(), 1);
}

/// However often it is started, it is started once, and a later start says whether it has ended.
pub async fn twice_is_once(f: Fixture) {
    let t = f.graph_site(1, diamond()).await;
    let claimed = f.claimed(&t).await;
    f.start_graph(&claimed).await;
    f.dispatch(&claimed).await;
    let s = Started::of(&t, &claimed);
    let start = GraphStart::from(&claimed);
    let again = || async { ok(f.store.graph_start(&start).await) };
    let ended = false;
    assert_eq!(again().await, GraphStarted::AlreadyStarted { ended });
    let jobs = f.all_jobs(&JobFilter::default(), 10).await;
    assert_eq!(jobs.len(), 1, "no node was begun twice");
    f.stop_graph(s.execution, GraphStop::Cancelled).await;
    let ended = true;
    assert_eq!(again().await, GraphStarted::AlreadyStarted { ended });
    graph_invariants::check(&f, &[s]).await;
}

/// Of many that start one execution at once, one starts it.
pub async fn many_at_once_start_one(f: Fixture) {
    let t = f.graph_site(20, diamond()).await;
    for _ in 0..10 {
        let claimed = f.claimed(&t).await;
        let barrier = Arc::new(tokio::sync::Barrier::new(6));
        let starts = (0..6).map(|_| {
            let (store, barrier) = (f.store.clone(), barrier.clone());
            let start = GraphStart::from(&claimed);
            tokio::spawn(async move {
                barrier.wait().await;
                ok(store.graph_start(&start).await)
            })
        });
        let answers = futures::future::join_all(starts.collect::<Vec<_>>()).await;
        let mut started = 0;
        for answer in answers {
            match answer.expect("no start panicked") {
                GraphStarted::Started => started += 1,
                other => assert_eq!(other, GraphStarted::AlreadyStarted { ended: false }),
            }
        }
        assert_eq!(started, 1);
    }
    assert_eq!(f.take(100).await.len(), 10, "one first node each");
}

/// What does not run cannot be started: an execution that nobody made, one of another version, or one that has ended.
pub async fn of_what_does_not_run_is_not_found(f: Fixture) {
    let t = f.graph_site(1, diamond()).await;
    let other = f.graph_site(1, graph(&["a"], &[])).await;
    let claimed = f.running(&t).await;
    let start = GraphStart::from(&claimed);
    let unknown = GraphStart {
        execution: fresh_id(),
        ..start.clone()
    };
    let mut elsewhere = GraphStart {
        version: other.version,
        ..start.clone()
    };
    elsewhere.origin.workspace = other.workspace;
    for wrong in [unknown, elsewhere] {
        let started = ok(f.store.graph_start(&wrong).await);
        assert_eq!(started, GraphStarted::NotFound);
    }
    f.finish(claimed.execution, ExecutionEnd::Failed).await;
    let started = ok(f.store.graph_start(&start).await);
    assert_eq!(started, GraphStarted::NotFound);
    assert_eq!(ok(f.store.graph_get(claimed.execution).await), None);
    assert_eq!(f.all_jobs(&JobFilter::default(), 10).await, []);
}

/// A binding has no nodes: nothing of it can be started in a store.
pub async fn of_a_binding_is_refused(f: Fixture) {
    let t = f.site(1).await;
    let claimed = f.running(&t).await;
    let started = ok(f.store.graph_start(&(&claimed).into()).await);
    assert_eq!(started, GraphStarted::NotAGraph);
    assert_eq!(ok(f.store.graph_get(claimed.execution).await), None);
    assert_eq!(ok(f.store.graph_nodes(claimed.execution).await), None);
    assert_eq!(f.slots(t.workspace).await.in_use, 1);
}

/// A first node whose input cannot be made fails the execution at once, and nothing of it becomes a job.
pub async fn a_first_node_without_its_input_fails_the_execution(f: Fixture) {
    let bad = node(json!({"id": "bad", "type": "task", "queue": QUEUE,
        "input": {"$from": "/params/nowhere"}}));
    let t = f
        .graph_site(1, graph_of(vec![task("good"), bad], &[]))
        .await;
    let claimed = f.claimed(&t).await;
    let s = Started::of(&t, &claimed);
    let started = ok(f.store.graph_start(&(&claimed).into()).await);
    let run = f.graph_run(s.execution).await;
    assert_eq!(run.state.letters(), "xf");
    let ended = EndedExecution {
        execution: s.execution,
        request: s.request,
        end: ExecutionEnd::Failed,
        status: RequestStatus::Failed,
        reason: Some(FailureReason::ExecutionFailed),
        error: run.error.clone(),
    };
    assert_eq!(started, GraphStarted::Ended(ended));
    let error = run.error.expect("it says why");
    assert!(error.starts_with("node `bad` failed: "), "{error}");
    let node = f.node(s.execution, "bad").await;
    assert_eq!((node.state, node.job), (NodeState::Failed, None));
    assert_eq!(f.take(10).await, []);
    let request = f.request(t.workspace, s.request).await;
    assert_eq!(request.status, RequestStatus::Failed);
    assert_eq!(request.failure_reason, Some(FailureReason::ExecutionFailed));
    assert_eq!(f.slots(t.workspace).await.in_use, 0);
    graph_invariants::check(&f, &[s]).await;
}
