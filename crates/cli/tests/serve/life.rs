//! Fifteen requests with every possible end, from the queue to Temporal and back. Independent of store and process.

use crate::order_workspace::OrderWorkspace;
use crate::temporal::{self, Namespace, Run, workflow_id};
use crate::{TIMEOUT, blocking};
use leasehold_core::graph::Graph;
use leasehold_core::{ExecutionId, FailureReason, RequestId, RequestStatus, VersionBody};
use leasehold_store::request::Request;
use leasehold_testbed::TestWorkspace;
use leasehold_testkit::Process;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Duration;

/// Number of requests of [`enqueue`].
pub(crate) const REQUESTS: usize = 15;

/// A request and its expected end.
pub(crate) struct ExpectedRequest {
    pub(crate) id: RequestId,
    defined: TestWorkspace,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Completes,
    Fails,
    TimesOut,
    IsTerminated,
    IsCancelled,
    IsGraph,
}

impl Kind {
    fn params(self) -> Value {
        match self {
            Kind::Completes | Kind::IsGraph => json!({"do": "complete", "order": 7, "text": "é"}),
            Kind::Fails => json!({"do": "fail"}),
            Kind::TimesOut | Kind::IsTerminated | Kind::IsCancelled => json!({"do": "wait"}),
        }
    }

    /// The end in Temporal's words.
    fn closed_as(self) -> &'static str {
        match self {
            Kind::Completes | Kind::IsGraph => "COMPLETED",
            Kind::Fails => "FAILED",
            Kind::TimesOut => "TIMED_OUT",
            Kind::IsTerminated => "TERMINATED",
            Kind::IsCancelled => "CANCELED",
        }
    }

    /// The expected failure reason and error text.
    fn failure(self) -> Option<(FailureReason, &'static str)> {
        match self {
            Kind::Completes | Kind::IsGraph => None,
            Kind::Fails => Some((FailureReason::ExecutionFailed, "the card was declined")),
            Kind::TimesOut => Some((FailureReason::TimedOut, "timeout passed")),
            Kind::IsTerminated => Some((FailureReason::Terminated, "out of stock")),
            Kind::IsCancelled => Some((FailureReason::Cancelled, "was cancelled")),
        }
    }
}

fn graph() -> Graph {
    let document = json!({
        "nodes": [
            {"type": "delay", "id": "second", "milliseconds": 1},
            {"type": "task", "id": "first", "queue": "letters"},
        ],
        "edges": [{"from": "first", "to": "second"}],
    });
    serde_json::from_value(document).unwrap()
}

/// Enqueues all requests in one call.
pub(crate) async fn enqueue(workspace: &OrderWorkspace) -> Vec<ExpectedRequest> {
    let graph = workspace.define(VersionBody::Graph(graph()), None).await;
    let limit = Some(Duration::from_secs(3));
    let limited = workspace.define(leasehold_testbed::binding(), limit).await;
    let mut kinds = vec![Kind::Completes; 7];
    kinds.extend([Kind::Fails; 3]);
    kinds.extend([Kind::IsGraph; 2]);
    kinds.extend([Kind::TimesOut, Kind::IsTerminated, Kind::IsCancelled]);
    assert_eq!(kinds.len(), REQUESTS);
    let defined = kinds.iter().map(|kind| match kind {
        Kind::IsGraph => graph,
        Kind::TimesOut => limited,
        _ => workspace.order,
    });
    let defined: Vec<TestWorkspace> = defined.collect();
    let requests = kinds.iter().zip(&defined);
    let requests = requests.map(|(kind, defined)| (defined.definition, kind.params()));
    let ids = workspace.enqueue_all(requests.collect()).await;
    let request_case = ids.into_iter().zip(defined).zip(kinds);
    request_case
        .map(|((id, defined), kind)| ExpectedRequest { id, defined, kind })
        .collect()
}

/// Waits until all are dispatched; asserts one workflow per request in Temporal.
pub(crate) async fn assert_started(
    workspace: &OrderWorkspace,
    namespace: &Namespace<'_>,
    all: &[ExpectedRequest],
) {
    for request_case in all {
        let request = workspace.dispatched(request_case.id).await;
        let by = workspace
            .actors_of(request_case.id, RequestStatus::Dispatched)
            .await;
        assert_eq!(by.len(), 1, "{request:?}");
    }
    let runs = namespace.all_runs(all.len()).await;
    let requests = workspace.all().await;
    temporal::assert_one_run_each(&runs, requests.iter().map(|request| request.execution));
    for request_case in all {
        let execution = execution_of(workspace, request_case).await;
        let run = run_of(&runs, execution);
        let expected = match request_case.kind {
            Kind::IsGraph => ("LeaseholdGraph", "leasehold"),
            _ => ("Order", "orders"),
        };
        assert_eq!(
            (run.workflow_type.name.as_str(), run.task_queue.as_str()),
            expected
        );
        let mut memo = json!({
            "workspaceId": workspace.workspace,
            "workflowDefinitionId": request_case.defined.definition,
            "requestId": request_case.id,
        });
        if request_case.kind == Kind::IsGraph {
            memo["priority"] = json!(0);
        }
        assert_eq!(run.memo.fields, memo);
    }
}

/// Ends each execution: by the worker, by timeout, or by the Temporal CLI. Waits until all have finished.
pub(crate) async fn end(
    workspace: &OrderWorkspace,
    namespace: &Namespace<'_>,
    all: &[ExpectedRequest],
) {
    let worker = namespace.worker();
    for request_case in all {
        let execution = execution_of(workspace, request_case).await;
        match request_case.kind {
            Kind::IsTerminated => namespace.terminate(execution, "out of stock"),
            Kind::IsCancelled => namespace.cancel(execution),
            _ => {}
        }
    }
    workspace
        .until("all ended", |counts| {
            counts.completed + counts.failed == all.len() as u64
        })
        .await;
    for request_case in all {
        assert_worker_input(workspace, &worker, request_case).await;
    }
}

/// Asserts the input that a worker receives.
async fn assert_worker_input(
    workspace: &OrderWorkspace,
    worker: &Process,
    request_case: &ExpectedRequest,
) {
    let execution = execution_of(workspace, request_case).await;
    let may_end_unseen = matches!(request_case.kind, Kind::IsTerminated | Kind::TimesOut);
    if may_end_unseen && !worker.log().contains(&execution.to_string()) {
        return;
    }
    let line = blocking(|| {
        worker.wait_for_line(TIMEOUT, |line| {
            line.starts_with("given ") && line.contains(&execution.to_string())
        })
    });
    let given: Value = serde_json::from_str(line.trim_start_matches("given ")).unwrap();
    let (node_ids, graph) = match request_case.kind {
        Kind::IsGraph => (json!(["first", "second"]), json!(graph())),
        _ => (json!([]), Value::Null),
    };
    let expected = json!({
        "executionId": execution,
        "workspaceId": workspace.workspace,
        "workflowDefinitionId": request_case.defined.definition,
        "workflowVersionId": request_case.defined.version,
        "nodeIds": node_ids,
        "params": request_case.kind.params(),
        "graph": graph,
    });
    assert_eq!(given, expected);
}

/// Asserts the end of every request, free slots, and agreement with Temporal. Returns requests and runs.
pub(crate) async fn assert_ended(
    workspace: &OrderWorkspace,
    namespace: &Namespace<'_>,
    all: &[ExpectedRequest],
) -> Vec<(Request, Run)> {
    let runs = namespace.closed_runs(all.len()).await;
    let requests = workspace.all().await;
    temporal::assert_one_run_each(&runs, requests.iter().map(|request| request.execution));
    let mut requests: HashMap<RequestId, Request> = requests
        .into_iter()
        .map(|request| (request.id, request))
        .collect();
    let mut ended = Vec::new();
    for request_case in all {
        let request = requests.remove(&request_case.id).unwrap();
        let error = request.last_error.clone().unwrap_or_default();
        assert_eq!(request.dispatch_failures, 0);
        match request_case.kind.failure() {
            None => {
                assert_eq!(request.status, RequestStatus::Completed, "{request:?}");
                assert_eq!(request.last_error, None);
            }
            Some((reason, text)) => {
                assert_eq!(request.status, RequestStatus::Failed, "{request:?}");
                assert_eq!(request.failure_reason, Some(reason.into()), "{request:?}");
                assert!(error.contains(text), "{error:?} does not contain {text:?}");
            }
        }
        let run = run_of(&runs, request.execution.unwrap()).clone();
        assert!(
            run.status.ends_with(request_case.kind.closed_as()),
            "{run:?}"
        );
        ended.push((request, run));
    }
    assert_eq!(workspace.slots().await.in_use, 0);
    ended
}

async fn execution_of(workspace: &OrderWorkspace, request_case: &ExpectedRequest) -> ExecutionId {
    workspace.get(request_case.id).await.execution.unwrap()
}

fn run_of(runs: &[Run], execution: ExecutionId) -> &Run {
    let id = workflow_id(execution);
    let found = runs.iter().find(|run| run.execution.workflow_id == id);
    found.unwrap_or_else(|| panic!("Temporal does not list {id}"))
}
