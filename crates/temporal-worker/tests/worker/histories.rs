//! Runs the executions whose histories are in `crates/temporal-worker/tests/histories`. With `LEASEHOLD_RECORD_HISTORIES=1` it records their histories
//! there; the README says when to do that.

use crate::temporal_fixture::{QUEUE, fixture};
use leasehold_core::ExecutionEnd;
use leasehold_core::graph::{Edge, Graph};
use leasehold_engine::Start;
use leasehold_engine_conformance::{EngineFixture, TaskWorkers};
use leasehold_testkit::TestTemporal;
use serde_json::{Value, json};
use std::path::Path;
use temporalio_client::grpc::WorkflowService;
use temporalio_client::tonic::IntoRequest;
use temporalio_client::{Connection, ConnectionOptions, Url};
use temporalio_common::protos::temporal::api::common::v1::WorkflowExecution;
use temporalio_common::protos::temporal::api::history::v1::History;
use temporalio_common::protos::temporal::api::workflowservice::v1::GetWorkflowExecutionHistoryRequest;

const RECORD_VARIABLE: &str = "LEASEHOLD_RECORD_HISTORIES";

fn graph(nodes: Vec<Value>, pairs: &[(&str, &str)]) -> Graph {
    Graph {
        nodes: nodes
            .into_iter()
            .map(|node| serde_json::from_value(node).unwrap())
            .collect(),
        edges: pairs
            .iter()
            .map(|(from, to)| Edge {
                from: (*from).to_owned(),
                to: (*to).to_owned(),
            })
            .collect(),
    }
}

fn task(id: &str, kind: &str) -> Value {
    json!({"id": id, "type": "task", "queue": QUEUE, "kind": kind, "input": id, "retry": {"max_attempts": 1}})
}

/// Reads the execution's history, and records it if [`RECORD_VARIABLE`] is set.
async fn record(start: &Start, name: &str) {
    let history = history_json(start).await;
    assert!(history.contains("LeaseholdGraph"));
    if std::env::var_os(RECORD_VARIABLE).is_some() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/histories");
        std::fs::write(directory.join(name), history).unwrap();
    }
}

/// Returns the history of an execution's workflow, in the JSON of the SDK's replayer.
async fn history_json(start: &Start) -> String {
    let url = format!("http://{}", TestTemporal::shared().address());
    let options = ConnectionOptions::new(Url::parse(&url).unwrap()).build();
    let mut connection = Connection::connect(options).await.unwrap();
    let mut events = Vec::new();
    let mut next_page_token = Vec::new();
    loop {
        let request = GetWorkflowExecutionHistoryRequest {
            namespace: "default".to_owned(),
            execution: Some(WorkflowExecution {
                workflow_id: format!("execution-{}", start.execution),
                run_id: String::new(),
            }),
            next_page_token,
            ..GetWorkflowExecutionHistoryRequest::default()
        };
        let answer = connection.get_workflow_execution_history(request.into_request());
        let answer = answer.await.unwrap().into_inner();
        events.extend(answer.history.unwrap_or_default().events);
        next_page_token = answer.next_page_token;
        if next_page_token.is_empty() {
            return serde_json::to_string(&History { events }).unwrap();
        }
    }
}

async fn ended(g: &EngineFixture, start: &Start, end: ExecutionEnd) {
    assert_eq!(g.wait_ended(start).await.0, end);
}

#[tokio::test(flavor = "multi_thread")]
async fn chain_with_delay_completes() {
    let g = fixture().await;
    let workers = TaskWorkers::start(&g);
    let nodes = vec![
        task("first", "echo"),
        json!({"id": "pause", "type": "delay", "milliseconds": 50}),
        task("last", "echo"),
    ];
    let pairs = [("first", "pause"), ("pause", "last")];
    let start = g.start(graph(nodes, &pairs), json!({"n": 1})).await;
    ended(&g, &start, ExecutionEnd::Completed).await;
    record(&start, "chain_with_delay.json").await;
    workers.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fan_out_with_failing_node_fails() {
    let g = fixture().await;
    let workers = TaskWorkers::start(&g);
    let nodes = vec![
        task("root", "echo"),
        task("good", "echo"),
        task("bad", "fail"),
        json!({"id": "pause", "type": "delay", "milliseconds": 3_600_000}),
        task("open", "hang"),
        task("join", "echo"),
    ];
    let middle = ["good", "bad", "pause", "open"];
    let pairs = middle.iter().flat_map(|id| [("root", *id), (*id, "join")]);
    let pairs: Vec<_> = pairs.collect();
    let start = g.start(graph(nodes, &pairs), json!({})).await;
    ended(&g, &start, ExecutionEnd::Failed).await;
    record(&start, "fan_out_with_failure.json").await;
    workers.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_graph_is_cancelled() {
    let g = fixture().await;
    let workers = TaskWorkers::start(&g);
    let nodes = vec![
        task("held", "hold"),
        json!({"id": "pause", "type": "delay", "milliseconds": 3_600_000}),
        task("never", "echo"),
    ];
    let pairs = [("held", "never"), ("pause", "never")];
    let start = g.start(graph(nodes, &pairs), json!({})).await;
    workers.wait_started("held", g.timeout).await;
    g.engine.cancel(start.execution, "test").await.unwrap();
    ended(&g, &start, ExecutionEnd::Cancelled).await;
    record(&start, "cancelled.json").await;
    workers.stop().await;
}

/// Ten rows of ten parallel nodes, each row after the one before; then a long chain.
#[tokio::test(flavor = "multi_thread")]
async fn graph_of_200_nodes_completes() {
    let g = fixture().await;
    let workers = TaskWorkers::start(&g);
    let id = |at: usize| format!("n{at}");
    let nodes = (0..200).map(|at| task(&id(at), "echo")).collect();
    let mut pairs = Vec::new();
    for at in 10..100 {
        pairs.extend((0..10).map(|before| (id(at / 10 * 10 - 10 + before), id(at))));
    }
    for at in 100..200 {
        pairs.push((id(at - if at % 10 == 0 { 1 } else { at % 10 }), id(at)));
    }
    let pairs: Vec<_> = pairs
        .iter()
        .map(|(f, t)| (f.as_str(), t.as_str()))
        .collect();
    let start = g.start(graph(nodes, &pairs), json!({})).await;
    ended(&g, &start, ExecutionEnd::Completed).await;
    record(&start, "of_200_nodes.json").await;
    workers.stop().await;
}

/// The inputs of its nodes exceed Temporal's limit for one task response.
#[tokio::test(flavor = "multi_thread")]
async fn wide_graph_with_large_params_completes() {
    let g = fixture().await;
    let workers = TaskWorkers::start(&g);
    let all =
        |at| json!({"id": format!("n{at}"), "type": "task", "queue": QUEUE, "kind": "nothing"});
    let nodes = (0..30).map(all).collect();
    let params = json!({"text": "x".repeat(200_000)});
    let start = g.start(graph(nodes, &[]), params).await;
    ended(&g, &start, ExecutionEnd::Completed).await;
    workers.stop().await;
}

/// Cancelling an execution cancels its queued job.
#[tokio::test(flavor = "multi_thread")]
async fn queued_job_of_a_cancelled_execution_is_cancelled() {
    let g = fixture().await;
    let start = g
        .start(graph(vec![task("waits", "echo")], &[]), json!({}))
        .await;
    g.wait_queued().await;
    g.engine.cancel(start.execution, "test").await.unwrap();
    ended(&g, &start, ExecutionEnd::Cancelled).await;
    let gone = leasehold_testkit::eventually(g.timeout, async || {
        let counts = g.store.queue_counts(QUEUE).await;
        counts.is_ok_and(|counts| counts.ready + counts.running == 0)
    });
    assert!(gone.await, "the job was not cancelled");
}

/// A queue without access for the worker's key fails the node with an error that names it.
#[tokio::test(flavor = "multi_thread")]
async fn queue_without_access_is_named_in_the_error() {
    let g = fixture().await;
    let node = json!({"id": "far", "type": "task", "queue": "elsewhere"});
    let start = g.start(graph(vec![node], &[]), json!({})).await;
    let error = "node `far` failed: failed to enqueue the job: the key of `leasehold worker` has no access to queue `elsewhere`";
    g.expect_failed(&start, error).await;
}
