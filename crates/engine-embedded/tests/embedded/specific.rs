//! Behaviour specific to the embedded engine: it rejects bindings, and an end updates request and slot in the same transaction.

use crate::{IDENTITY, postgres, runners, sqlite, without_runner};
use leasehold_core::graph::{Edge, Graph, Node, NodeKind, NodeState};
use leasehold_core::job::{JobClaim, JobEnd, JobFinish, JobFinished, RetryMode};
use leasehold_core::queue::HTTP_NODES;
use leasehold_core::{ExecutionEnd, FailureReason, RequestStatus, VersionBody};
use leasehold_engine::{EndedPage, StartOutcome, StopAck};
use leasehold_engine_conformance::{EngineFixture, LocalServer, TaskWorkers};
use leasehold_engine_embedded::NodeRunnerOptions;
use leasehold_store::job::JobCancelled;
use leasehold_testbed::{BackendKind, TestBackend};
use leasehold_testkit::eventually;
use serde_json::json;
use std::time::Duration;

fn task(g: &EngineFixture, id: &str) -> Node {
    let kind = NodeKind::Task {
        queue: g.queue.clone(),
        kind: Some("echo".to_owned()),
    };
    Node::new(id, kind)
}

fn two_in_a_row(g: &EngineFixture) -> Graph {
    Graph {
        nodes: vec![task(g, "first"), task(g, "second")],
        edges: vec![Edge {
            from: "first".to_owned(),
            to: "second".to_owned(),
        }],
    }
}

fn claim(g: &EngineFixture) -> JobClaim {
    JobClaim {
        queue: g.queue.clone(),
        worker: "manual".to_owned(),
        max: 10,
        lease: Some(Duration::from_secs(60)),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn binding_is_rejected_with_the_required_engine() {
    let g = sqlite().await;
    let binding = VersionBody::Binding {
        workflow_type: "Order".to_owned(),
        task_queue: "orders".to_owned(),
    };
    let start = g.admit_body(binding, json!({})).await;
    let StartOutcome::Refused { error } = g.engine.start(&start).await else {
        panic!("not rejected");
    };
    assert!(error.contains("--engine temporal"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_ended_executions_to_reconcile() {
    let g = sqlite().await;
    let workers = TaskWorkers::start(&g);
    let start = g.start(two_in_a_row(&g), json!({})).await;
    g.expect_completed(&start).await;
    let now = g.store.now().await.unwrap();
    let page = g.engine.ended_since(now, None).await;
    assert_eq!(page, Ok(EndedPage::default()));
    assert_eq!(g.engine.pollers(&start.version.body).await, Ok(None));
    workers.stop().await;
}

async fn end_frees_the_slot_at_once(g: EngineFixture) {
    let start = g.start(two_in_a_row(&g), json!({})).await;
    let in_use = || async {
        let slots = g.store.workspace_slots(start.workspace).await;
        slots.unwrap().unwrap().in_use
    };
    assert_eq!(in_use().await, 1);
    let claimed = g.store.job_claim(&claim(&g)).await.unwrap();
    let failed = JobFinish {
        claim: claimed.jobs[0].claim(),
        end: JobEnd::Failed {
            error: "no paper".to_owned(),
            retry_mode: RetryMode::Never,
        },
    };
    let worker = "manual";
    let finished = g.store.job_finish(worker, &[failed]).await.unwrap();
    assert_eq!(finished.jobs, [JobFinished::Failed]);
    assert_eq!(in_use().await, 0);
    let request = g.store.request_get(start.workspace, start.request).await;
    let request = request.unwrap().unwrap();
    assert_eq!(request.status, RequestStatus::Failed);
    assert_eq!(
        request.failure_reason,
        Some(FailureReason::ExecutionFailed.into())
    );
    let error = Some("node `first` failed: no paper");
    assert_eq!(request.last_error.as_deref(), error);
}

#[tokio::test(flavor = "multi_thread")]
async fn end_frees_the_slot_at_once_on_sqlite() {
    end_frees_the_slot_at_once(sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn end_frees_the_slot_at_once_on_postgres() {
    end_frees_the_slot_at_once(postgres().await).await;
}

async fn cancel_revokes_the_lease_of_a_running_job(g: EngineFixture) {
    let start = g.start(two_in_a_row(&g), json!({})).await;
    let claimed = g.store.job_claim(&claim(&g)).await.unwrap();
    let job = &claimed.jobs[0];
    let cancelled = g.store.job_cancel(job.id).await.unwrap();
    assert_eq!(cancelled, JobCancelled::OfGraph);
    let ack = g.engine.cancel(start.execution, "not wanted").await;
    assert_eq!(ack, Ok(StopAck::Acknowledged));
    let lease = Duration::from_secs(60);
    let held = g.store.job_renew("manual", &[job.claim()], lease).await;
    assert_eq!(held.unwrap().renewed, []);
    let (end, error) = g.wait_ended(&start).await;
    assert_eq!(end, ExecutionEnd::Cancelled);
    assert_eq!(error.as_deref(), Some("not wanted"));
    let request = g.store.request_get(start.workspace, start.request).await;
    let request = request.unwrap().unwrap();
    assert_eq!(
        request.failure_reason,
        Some(FailureReason::Cancelled.into())
    );
    let timeline = g.store.request_timeline(start.workspace, start.request);
    let last = timeline.await.unwrap().pop().unwrap();
    assert_eq!(last.by, IDENTITY);
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_revokes_the_lease_of_a_running_job_on_sqlite() {
    cancel_revokes_the_lease_of_a_running_job(sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_revokes_the_lease_of_a_running_job_on_postgres() {
    cancel_revokes_the_lease_of_a_running_job(postgres().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_a_cancelled_execution_cannot_be_claimed() {
    let g = sqlite().await;
    let start = g.start(two_in_a_row(&g), json!({})).await;
    let ack = g.engine.cancel(start.execution, "not wanted").await;
    assert_eq!(ack, Ok(StopAck::Acknowledged));
    let claimed = g.store.job_claim(&claim(&g)).await.unwrap();
    assert_eq!(claimed.jobs, []);
    let states = [NodeState::Cancelled, NodeState::Cancelled];
    assert_eq!(g.states(&start).await, states);
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_returns_unfinished_calls() {
    let backend = TestBackend::new(BackendKind::Sqlite).await;
    let store = backend.store.clone();
    let g = without_runner(store.clone(), backend);
    let server = LocalServer::start().await;
    let call = json!({"id": "call", "type": "http", "url": server.url("/hang")});
    let graph = Graph {
        nodes: vec![serde_json::from_value(call).unwrap()],
        edges: Vec::new(),
    };
    let start = g.start(graph, json!({})).await;
    let options = NodeRunnerOptions {
        drain_timeout: Duration::from_millis(100),
        ..NodeRunnerOptions::default()
    };
    let runner = runners(&store, &options);
    let called = eventually(g.timeout, async || server.calls("/hang") == 1);
    assert!(called.await);
    runner.stop().await;
    let counts = store.queue_counts(HTTP_NODES).await.unwrap();
    assert_eq!((counts.ready, counts.running), (1, 0));
    let node = g.node(&start, "call").await;
    assert_eq!((node.state, node.attempts), (NodeState::Running, 0));
    // The next runner makes the call again.
    let next = runners(&store, &options);
    let called = eventually(g.timeout, async || server.calls("/hang") == 2);
    assert!(called.await);
    next.stop().await;
}
