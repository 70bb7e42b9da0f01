//! Fifteen requests with every end there is, from the queue to Temporal and back. Does not know which store or process serves them.

use crate::order_workspace::OrderWorkspace;
use crate::temporal::{self, Namespace, Run, workflow_id};
use crate::{PATIENCE, blocking};
use leasehold_core::graph::Graph;
use leasehold_core::{ExecutionId, FailureReason, RequestId, RequestStatus, VersionBody};
use leasehold_store::request::Request;
use leasehold_testbed::TestWorkspace;
use leasehold_testkit::Process;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Duration;

/// How many requests [`enqueue`] makes.
pub(crate) const REQUESTS: usize = 15;

/// A request of this test, and how it must end.
pub(crate) struct Lived {
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

    /// As Temporal calls its end.
    fn closed_as(self) -> &'static str {
        match self {
            Kind::Completes | Kind::IsGraph => "COMPLETED",
            Kind::Fails => "FAILED",
            Kind::TimesOut => "TIMED_OUT",
            Kind::IsTerminated => "TERMINATED",
            Kind::IsCancelled => "CANCELED",
        }
    }

    /// Why it fails, and what its error says.
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

/// Enqueues them all in one call.
pub(crate) async fn enqueue(site: &OrderWorkspace) -> Vec<Lived> {
    let graph = site.define(VersionBody::Graph(graph()), None).await;
    let limit = Some(Duration::from_secs(3));
    let limited = site.define(leasehold_testbed::binding(), limit).await;
    let mut kinds = vec![Kind::Completes; 7];
    kinds.extend([Kind::Fails; 3]);
    kinds.extend([Kind::IsGraph; 2]);
    kinds.extend([Kind::TimesOut, Kind::IsTerminated, Kind::IsCancelled]);
    assert_eq!(kinds.len(), REQUESTS);
    let defined = kinds.iter().map(|kind| match kind {
        Kind::IsGraph => graph,
        Kind::TimesOut => limited,
        _ => site.order,
    });
    let defined: Vec<TestWorkspace> = defined.collect();
    let asked = kinds.iter().zip(&defined);
    let asked = asked.map(|(kind, defined)| (defined.definition, kind.params()));
    let ids = site.enqueue_all(asked.collect()).await;
    let lived = ids.into_iter().zip(defined).zip(kinds);
    lived
        .map(|((id, defined), kind)| Lived { id, defined, kind })
        .collect()
}

/// Waits until all were dispatched, and looks at Temporal: one workflow each, and no other.
pub(crate) async fn assert_started(
    site: &OrderWorkspace,
    namespace: &Namespace<'_>,
    all: &[Lived],
) {
    for lived in all {
        let request = site.dispatched(lived.id).await;
        let by = site.moved_by(lived.id, RequestStatus::Dispatched).await;
        assert_eq!(by.len(), 1, "{request:?}");
    }
    let runs = namespace.all_runs(all.len()).await;
    let requests = site.all().await;
    temporal::assert_one_run_each(&runs, requests.iter().map(|request| request.execution));
    for lived in all {
        let execution = execution_of(site, lived).await;
        let run = run_of(&runs, execution);
        let expected = match lived.kind {
            Kind::IsGraph => ("LeaseholdGraph", "leasehold"),
            _ => ("Order", "orders"),
        };
        assert_eq!(
            (run.workflow_type.name.as_str(), run.task_queue.as_str()),
            expected
        );
        let mut memo = json!({
            "workspaceId": site.workspace,
            "workflowDefinitionId": lived.defined.definition,
            "requestId": lived.id,
        });
        if lived.kind == Kind::IsGraph {
            memo["priority"] = json!(0);
        }
        assert_eq!(run.memo.fields, memo);
    }
}

/// Brings each to its end: by the worker, by its time limit, by Temporal's command line. Waits until all have ended here.
pub(crate) async fn end(site: &OrderWorkspace, namespace: &Namespace<'_>, all: &[Lived]) {
    let worker = namespace.worker();
    for lived in all {
        let execution = execution_of(site, lived).await;
        match lived.kind {
            Kind::IsTerminated => namespace.terminate(execution, "out of stock"),
            Kind::IsCancelled => namespace.cancel(execution),
            _ => {}
        }
    }
    site.until("all ended", |counts| {
        counts.completed + counts.failed == all.len() as u64
    })
    .await;
    for lived in all {
        assert_given(site, &worker, lived).await;
    }
}

/// What a worker that somebody else wrote is given.
async fn assert_given(site: &OrderWorkspace, worker: &Process, lived: &Lived) {
    let execution = execution_of(site, lived).await;
    let may_end_unseen = matches!(lived.kind, Kind::IsTerminated | Kind::TimesOut);
    if may_end_unseen && !worker.log().contains(&execution.to_string()) {
        return;
    }
    let line = blocking(|| {
        worker.wait_for_line(PATIENCE, |line| {
            line.starts_with("given ") && line.contains(&execution.to_string())
        })
    });
    let given: Value = serde_json::from_str(line.trim_start_matches("given ")).unwrap();
    let (node_ids, graph) = match lived.kind {
        Kind::IsGraph => (json!(["first", "second"]), json!(graph())),
        _ => (json!([]), Value::Null),
    };
    let expected = json!({
        "executionId": execution,
        "workspaceId": site.workspace,
        "workflowDefinitionId": lived.defined.definition,
        "workflowVersionId": lived.defined.version,
        "nodeIds": node_ids,
        "params": lived.kind.params(),
        "graph": graph,
    });
    assert_eq!(given, expected);
}

/// Every request ended as it must, every slot is free, and Temporal agrees. Returns the requests and their runs.
pub(crate) async fn assert_ended(
    site: &OrderWorkspace,
    namespace: &Namespace<'_>,
    all: &[Lived],
) -> Vec<(Request, Run)> {
    let runs = namespace.closed_runs(all.len()).await;
    let requests = site.all().await;
    temporal::assert_one_run_each(&runs, requests.iter().map(|request| request.execution));
    let mut requests: HashMap<RequestId, Request> = requests
        .into_iter()
        .map(|request| (request.id, request))
        .collect();
    let mut ended = Vec::new();
    for lived in all {
        let request = requests.remove(&lived.id).unwrap();
        let error = request.last_error.clone().unwrap_or_default();
        assert_eq!(request.dispatch_failures, 0);
        match lived.kind.failure() {
            None => {
                assert_eq!(request.status, RequestStatus::Completed, "{request:?}");
                assert_eq!(request.last_error, None);
            }
            Some((reason, text)) => {
                assert_eq!(request.status, RequestStatus::Failed, "{request:?}");
                assert_eq!(request.failure_reason, Some(reason), "{request:?}");
                assert!(error.contains(text), "{error:?} does not say {text:?}");
            }
        }
        let run = run_of(&runs, request.execution.unwrap()).clone();
        assert!(run.status.ends_with(lived.kind.closed_as()), "{run:?}");
        ended.push((request, run));
    }
    assert_eq!(site.slots().await.in_use, 0);
    ended
}

async fn execution_of(site: &OrderWorkspace, lived: &Lived) -> ExecutionId {
    site.get(lived.id).await.execution.unwrap()
}

fn run_of(runs: &[Run], execution: ExecutionId) -> &Run {
    let id = workflow_id(execution);
    let found = runs.iter().find(|run| run.execution.workflow_id == id);
    found.unwrap_or_else(|| panic!("Temporal does not list {id}"))
}
