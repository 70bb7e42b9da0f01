//! Starts: the request, repetitions, rejections, and workflow ids that are in use.

use crate::calls::{describe, history};
use crate::endings::end_of;
use crate::worker::{Worker, failure};
use crate::{bound_to, engine, limited, options, order, start_of, task_queue, workflow_id};
use leasehold_core::graph::{Edge, Graph, Node, NodeKind};
use leasehold_core::{ExecutionEnd, JsonText, RequestId, VersionBody};
use leasehold_engine::{Description, Engine, Start, StartOutcome};
use leasehold_engine_temporal::{TemporalEngine, TemporalOptions};
use leasehold_testkit::TestTemporal;
use serde_json::{Value, json};
use std::time::Duration;
use temporalio_common::protos::temporal::api::common::v1::Payload;
use temporalio_common::protos::temporal::api::enums::v1::TaskQueueKind;
use temporalio_common::protos::temporal::api::history::v1::WorkflowExecutionStartedEventAttributes;
use temporalio_common::protos::temporal::api::history::v1::history_event::Attributes;
use uuid::Uuid;

async fn started(start: &Start) -> WorkflowExecutionStartedEventAttributes {
    let first = history(&workflow_id(start)).await.remove(0);
    match first.attributes {
        Some(Attributes::WorkflowExecutionStartedEventAttributes(started)) => started,
        other => panic!("the first event is {other:?}"),
    }
}

fn read(payload: &Payload) -> Value {
    assert_eq!(payload.metadata["encoding"], b"json/plain");
    serde_json::from_slice(&payload.data).unwrap()
}

#[tokio::test]
async fn binding_starts_with_type_queue_and_one_json_argument() {
    let start = limited(order(), Duration::from_secs(90));
    assert_eq!(engine().start(&start).await, StartOutcome::Started);
    let seen = started(&start).await;
    assert_eq!(seen.workflow_type.unwrap().name, "Order");
    let queue = seen.task_queue.unwrap();
    assert_eq!(queue.name, task_queue(&start));
    assert_eq!(queue.kind(), TaskQueueKind::Normal);
    assert_eq!(seen.workflow_execution_timeout.unwrap().seconds, 90);
    assert_eq!(seen.identity, "leasehold");
    assert!(seen.retry_policy.is_none());
    let arguments = seen.input.unwrap().payloads;
    assert_eq!(arguments.len(), 1);
    assert_eq!(
        read(&arguments[0]),
        json!({
            "executionId": start.execution,
            "workspaceId": start.workspace,
            "workflowDefinitionId": start.definition,
            "workflowVersionId": start.version.id,
            "nodeIds": [],
            "params": {"amount": 42},
            "graph": null,
        })
    );
}

#[tokio::test]
async fn graph_starts_on_the_graph_queue_with_nodes_in_order() {
    let delay = |id: &str| Node::new(id, NodeKind::Delay { milliseconds: 1 });
    let graph = Graph {
        nodes: vec![delay("second"), delay("first")],
        edges: vec![Edge {
            from: "first".to_owned(),
            to: "second".to_owned(),
        }],
    };
    let start = start_of(VersionBody::Graph(graph.clone()));
    assert_eq!(engine().start(&start).await, StartOutcome::Started);
    let seen = started(&start).await;
    assert_eq!(seen.workflow_type.unwrap().name, "LeaseholdGraph");
    assert_eq!(seen.task_queue.unwrap().name, "leasehold");
    assert_eq!(
        seen.workflow_execution_timeout.unwrap_or_default().seconds,
        0
    );
    let argument = read(&seen.input.unwrap().payloads[0]);
    assert_eq!(argument["nodeIds"], json!(["first", "second"]));
    assert_eq!(argument["graph"], serde_json::to_value(&graph).unwrap());
}

#[tokio::test]
async fn memo_identifies_the_request() {
    let start = order();
    engine().start(&start).await;
    let fields = describe(&workflow_id(&start)).await.memo.unwrap().fields;
    assert_eq!(fields.len(), 3);
    assert_eq!(read(&fields["workspaceId"]), json!(start.workspace));
    assert_eq!(
        read(&fields["workflowDefinitionId"]),
        json!(start.definition)
    );
    assert_eq!(read(&fields["requestId"]), json!(start.request));
}

#[tokio::test]
async fn priority_is_mapped_and_fairness_key_is_the_workspace() {
    let engine = engine();
    for (ours, temporals) in [
        (1000, 1),
        (100, 1),
        (99, 2),
        (1, 2),
        (0, 3),
        (-1, 4),
        (-99, 4),
        (-100, 5),
        (-1000, 5),
    ] {
        let start = Start {
            priority: ours,
            ..order()
        };
        assert_eq!(engine.start(&start).await, StartOutcome::Started);
        let seen = started(&start).await.priority.unwrap();
        assert_eq!(seen.priority_key, temporals, "{ours}");
        assert_eq!(seen.fairness_key, start.workspace.to_string());
    }
}

#[tokio::test]
async fn trace_is_in_the_header_and_for_graphs_in_the_memo() {
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let graph = Graph {
        nodes: vec![Node::new("only", NodeKind::Delay { milliseconds: 1 })],
        edges: Vec::new(),
    };
    let graph = start_of(VersionBody::Graph(graph));
    for (start, in_memo) in [(order(), false), (graph, true)] {
        let start = Start {
            trace: Some(trace.to_owned()),
            ..start
        };
        assert_eq!(engine().start(&start).await, StartOutcome::Started);
        let seen = started(&start).await;
        let header = seen.header.unwrap();
        // As the OpenTelemetry interceptors of Temporal's SDKs read it.
        assert_eq!(
            read(&header.fields["_tracer-data"]),
            json!({"traceparent": trace})
        );
        let memo = seen.memo.unwrap();
        let memo = memo.fields.get("traceparent").map(read);
        assert_eq!(memo, in_memo.then(|| json!(trace)));
    }
    let untraced = order();
    assert_eq!(engine().start(&untraced).await, StartOutcome::Started);
    let header = started(&untraced).await.header;
    assert!(header.is_none_or(|header| header.fields.is_empty()));
}

#[tokio::test]
async fn repeated_start_is_idempotent() {
    let start = order();
    let engine = engine();
    assert_eq!(engine.start(&start).await, StartOutcome::Started);
    let run = describe(&workflow_id(&start)).await.execution;
    assert_eq!(engine.start(&start).await, StartOutcome::Started);
    assert_eq!(describe(&workflow_id(&start)).await.execution, run);
}

#[tokio::test]
async fn concurrent_starts_start_one_workflow() {
    let start = order();
    let engine = engine();
    let starts = (0..20).map(|_| engine.start(&start));
    for outcome in futures::future::join_all(starts).await {
        assert_eq!(outcome, StartOutcome::Started);
    }
    let seen = describe(&workflow_id(&start)).await;
    assert_eq!(seen.first_run_id, seen.execution.unwrap().run_id);
}

#[tokio::test]
async fn start_after_the_end_reports_already_started() {
    let start = order();
    let engine = engine();
    engine.start(&start).await;
    engine.terminate(start.execution, "enough").await.unwrap();
    let run = describe(&workflow_id(&start)).await.execution;
    assert_eq!(
        engine.start(&start).await,
        StartOutcome::AlreadyStarted { ended: true }
    );
    assert_eq!(describe(&workflow_id(&start)).await.execution, run);
}

#[tokio::test]
async fn continued_workflow_is_recognized() {
    let start = order();
    let engine = engine();
    engine.start(&start).await;
    let mut worker = Worker::of(&start).await;
    worker.continue_as_new(0).await;
    assert_eq!(
        engine.start(&start).await,
        StartOutcome::AlreadyStarted { ended: false }
    );
    assert_eq!(
        engine.describe(start.execution).await,
        Ok(Description::Open)
    );
    worker.complete().await;
    assert_eq!(
        engine.start(&start).await,
        StartOutcome::AlreadyStarted { ended: true }
    );
}

#[tokio::test]
async fn retried_workflow_is_recognized_and_open_until_its_last_attempt() {
    let start = order();
    let engine = engine();
    engine.start(&start).await;
    let mut worker = Worker::of(&start).await;
    worker.continue_as_new(2).await;
    worker.fail(failure(&["first attempt"])).await;
    assert_eq!(
        engine.describe(start.execution).await,
        Ok(Description::Open)
    );
    assert_eq!(
        engine.start(&start).await,
        StartOutcome::AlreadyStarted { ended: false }
    );
    worker.fail(failure(&["last attempt"])).await;
    assert_eq!(
        end_of(&engine, start.execution).await,
        (ExecutionEnd::Failed, Some("last attempt".to_owned()))
    );
    assert_eq!(
        engine.start(&start).await,
        StartOutcome::AlreadyStarted { ended: true }
    );
}

#[tokio::test]
async fn reset_workflow_is_recognized() {
    let start = order();
    let engine = engine();
    engine.start(&start).await;
    let mut worker = Worker::of(&start).await;
    worker.complete().await;
    let id = workflow_id(&start);
    let reset = ["workflow", "reset", "--type", "FirstWorkflowTask"];
    let arguments = [&reset[..], &["--workflow-id", &id, "--reason", "again"]].concat();
    TestTemporal::shared().cli(&arguments).unwrap();
    assert_eq!(
        engine.describe(start.execution).await,
        Ok(Description::Open)
    );
    assert_eq!(engine.start(&start).await, StartOutcome::Started);
}

#[tokio::test]
async fn foreign_workflow_id_is_rejected() {
    let start = order();
    let id = workflow_id(&start);
    let taken = ["workflow", "start", "--type", "Other", "--task-queue", "q"];
    TestTemporal::shared()
        .cli(&[&taken[..], &["--workflow-id", &id]].concat())
        .unwrap();
    let rejected = StartOutcome::Refused {
        error: "the workflow id is in use by a workflow that Leasehold did not start".to_owned(),
    };
    assert_eq!(engine().start(&start).await, rejected);
    let other_request = order();
    engine().start(&other_request).await;
    let mixed_up = Start {
        request: RequestId(Uuid::now_v7()),
        ..other_request
    };
    assert_eq!(
        engine().start(&mixed_up).await,
        StartOutcome::Started,
        "the execution id alone identifies a start"
    );
}

#[tokio::test]
async fn invalid_start_is_rejected() {
    let engine = engine();
    let too_long = "x".repeat(1001);
    let too_large = Start {
        params: JsonText::from(&json!("x".repeat(3 * 1024 * 1024))),
        ..order()
    };
    for start in [
        bound_to(&too_long, "orders"),
        bound_to("Order", &too_long),
        bound_to("", "orders"),
        too_large,
    ] {
        let outcome = engine.start(&start).await;
        assert!(
            matches!(outcome, StartOutcome::Refused { .. }),
            "{outcome:?}"
        );
        assert_eq!(
            engine.describe(start.execution).await,
            Ok(Description::NotFound)
        );
    }
}

#[tokio::test]
async fn message_too_large_for_the_server_is_rejected() {
    let start = Start {
        // Sent compressed; the server's limit of 4 MB applies after decompression.
        params: JsonText::from(&json!("x".repeat(6 * 1024 * 1024))),
        ..order()
    };
    let outcome = engine().start(&start).await;
    assert!(
        matches!(outcome, StartOutcome::Refused { .. }),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn missing_namespace_is_unavailable() {
    let engine = TemporalEngine::new(TemporalOptions {
        namespace: "nowhere".to_owned(),
        ..options()
    })
    .unwrap();
    let outcome = engine.start(&order()).await;
    assert!(
        matches!(&outcome, StartOutcome::Unavailable { reached: false, error } if error.contains("nowhere")),
        "{outcome:?}"
    );
}
