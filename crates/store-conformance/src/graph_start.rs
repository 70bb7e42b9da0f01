//! The start of a graph.

use crate::Fixture;
use crate::factory::{new_request, ok};
use crate::graph_factory::{StartedGraph, diamond, graph, graph_of, task, task_with_max_attempts};
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
    serde_json::from_value(value).expect("the job belongs to a node")
}

/// Nodes without predecessors become jobs with the request's priority; the others wait.
pub async fn first_nodes_become_jobs(f: Fixture) {
    let t = f
        .graph_workspace(1, graph(&["a", "b", "c"], &[("a", "c"), ("b", "c")]))
        .await;
    let request = NewRequest {
        priority: 7,
        ..new_request(&t)
    };
    let s = f.enqueue_started_with(&t, request).await;
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
    assert_eq!(kinds, ["b", "a"], "jobs are in the order of the graph");
    for job in jobs {
        assert_eq!(job.queue, QUEUE);
        assert_eq!(job.status, JobStatus::Queued);
        assert_eq!((job.priority, job.execution), (7, Some(s.execution)));
        assert_eq!(f.job(job.id).await, job);
        let node = f.node(s.execution, &job.kind).await;
        assert_eq!(node.job, Some(job.id));
        assert_eq!(node.started_at, Some(f.now()));
    }
    graph_invariants::check(&f, &[s]).await;
}

/// Retry policy and timeout of a node override those of its queue.
pub async fn node_retry_and_timeout_override_the_queue(f: Fixture) {
    let own = Node {
        timeout: Some(Duration::from_millis(250)),
        ..task_with_max_attempts("own", 3)
    };
    let t = f
        .graph_workspace(1, graph_of(vec![own, task("plain")], &[]))
        .await;
    f.enqueue_started(&t).await;
    let jobs = f.claim_nodes(&["own", "plain"]).await;
    assert_eq!(jobs[0].retry.max_attempts, 3);
    assert_eq!(jobs[0].retry.backoff.base, Duration::ZERO);
    assert_eq!(jobs[0].timeout, Some(Duration::from_millis(250)));
    assert_eq!(jobs[1].timeout, None);
}

/// An http and a delay node are jobs in internal queues; the job of a delay is due when the delay is over.
pub async fn http_and_delay_nodes_use_internal_queues(f: Fixture) {
    let call = node(json!({"id": "call", "type": "http", "method": "POST",
        "url": "https://example.com/orders/{/params/order}", "timeout_ms": 1_500}));
    let pause = node(json!({"id": "pause", "type": "delay", "milliseconds": 60_000}));
    let t = f.graph_workspace(1, graph_of(vec![call, pause], &[])).await;
    let s = f.enqueue_started(&t).await;
    let calls = f.claim_jobs_from(HTTP_NODES, 10).await.jobs;
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].timeout, Some(Duration::from_millis(1_500)));
    let call: HttpCall = calls[0].payload.read().expect("the call is in the payload");
    assert_eq!(call.url, "https://example.com/orders/7");
    assert!(call.idempotency_key.contains(&s.execution.to_string()));
    let pauses = f.claim_jobs_from(DELAY_NODES, 10).await;
    assert_eq!(pauses.jobs, []);
    assert_eq!(pauses.next_due_in, Some(Duration::from_secs(60)));
    f.advance(60);
    assert_eq!(f.claim_jobs_from(DELAY_NODES, 10).await.jobs.len(), 1);
}

/// Repeated starts start the graph once; a later start reports whether it has ended.
pub async fn repeated_start_starts_once(f: Fixture) {
    let t = f.graph_workspace(1, diamond()).await;
    let claimed = f.enqueue_claimed(&t).await;
    f.start_graph(&claimed).await;
    f.dispatch(&claimed).await;
    let s = StartedGraph::of(&t, &claimed);
    let start = GraphStart::from(&claimed);
    let again = || async { ok(f.store.graph_start(&start).await) };
    let ended = false;
    assert_eq!(again().await, GraphStarted::AlreadyStarted { ended });
    let jobs = f.all_jobs(&JobFilter::default(), 10).await;
    assert_eq!(jobs.len(), 1, "no node was started twice");
    f.stop_graph(s.execution, GraphStop::Cancelled).await;
    let ended = true;
    assert_eq!(again().await, GraphStarted::AlreadyStarted { ended });
    graph_invariants::check(&f, &[s]).await;
}

/// Of concurrent starts of one execution, one starts it.
pub async fn concurrent_starts_start_once(f: Fixture) {
    let t = f.graph_workspace(20, diamond()).await;
    for _ in 0..10 {
        let claimed = f.enqueue_claimed(&t).await;
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
            match answer.expect("the start did not panic") {
                GraphStarted::Started => started += 1,
                other => assert_eq!(other, GraphStarted::AlreadyStarted { ended: false }),
            }
        }
        assert_eq!(started, 1);
    }
    assert_eq!(
        f.claim_jobs(100).await.len(),
        10,
        "one first node per execution"
    );
}

/// The start of an unknown or ended execution, or of another version, is not found.
pub async fn start_of_a_non_running_execution_is_not_found(f: Fixture) {
    let t = f.graph_workspace(1, diamond()).await;
    let other = f.graph_workspace(1, graph(&["a"], &[])).await;
    let claimed = f.enqueue_running(&t).await;
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

/// A binding has no nodes, so the store cannot start it.
pub async fn binding_cannot_be_started(f: Fixture) {
    let t = f.workspace(1).await;
    let claimed = f.enqueue_running(&t).await;
    let started = ok(f.store.graph_start(&(&claimed).into()).await);
    assert_eq!(started, GraphStarted::NotAGraph);
    assert_eq!(ok(f.store.graph_get(claimed.execution).await), None);
    assert_eq!(ok(f.store.graph_nodes(claimed.execution).await), None);
    assert_eq!(f.slots(t.workspace).await.in_use, 1);
}

/// A first node whose input cannot be resolved fails the execution, and no node becomes a job.
pub async fn first_node_with_missing_input_fails_the_execution(f: Fixture) {
    let bad = node(json!({"id": "bad", "type": "task", "queue": QUEUE,
        "input": {"$from": "/params/nowhere"}}));
    let t = f
        .graph_workspace(1, graph_of(vec![task("good"), bad], &[]))
        .await;
    let claimed = f.enqueue_claimed(&t).await;
    let s = StartedGraph::of(&t, &claimed);
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
    let error = run.error.expect("the error is set");
    assert!(error.starts_with("node `bad` failed: "), "{error}");
    let node = f.node(s.execution, "bad").await;
    assert_eq!((node.state, node.job), (NodeState::Failed, None));
    assert_eq!(f.claim_jobs(10).await, []);
    let request = f.request(t.workspace, s.request).await;
    assert_eq!(request.status, RequestStatus::Failed);
    assert_eq!(
        request.failure_reason,
        Some(FailureReason::ExecutionFailed.into())
    );
    assert_eq!(f.slots(t.workspace).await.in_use, 0);
    graph_invariants::check(&f, &[s]).await;
}
