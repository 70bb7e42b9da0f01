//! Starts a workflow, and finds out who started it if its id is taken. `grpc_codes` classifies the errors.

use crate::TemporalEngine;
use crate::connection::RpcError;
use crate::describe::info;
use crate::grpc_codes::{detail, start_outcome};
use crate::input;
use crate::proto::{
    DescribeWorkflowExecutionResponse, StartWorkflowExecutionRequest, TaskQueue,
    WorkflowExecutionAlreadyStartedFailure, WorkflowExecutionInfo, WorkflowExecutionStatus,
    WorkflowIdConflictPolicy, WorkflowIdReusePolicy, WorkflowType,
};
use leasehold_core::{ExecutionId, RequestId, VersionBody};
use leasehold_crash_marker::{Computation, reach_failpoint};
use leasehold_engine::{Start, StartOutcome};

impl TemporalEngine {
    pub(crate) async fn start_workflow(&self, start: &Start) -> StartOutcome {
        let request = match self.start_request(start) {
            Ok(request) => request,
            Err(error) => {
                return StartOutcome::Refused {
                    error: error.to_string(),
                };
            }
        };
        let sent = self.connection.call(self.options.call_timeout, request);
        match sent.await {
            // Temporal answers a repeated start with the same request id like the first one, with the current status.
            Ok(response) if crate::describe::end(response.status()).is_some() => {
                StartOutcome::AlreadyStarted { ended: true }
            }
            Ok(_) => StartOutcome::Started,
            Err(rpc_error) => match start_outcome(&rpc_error) {
                Some(outcome) => outcome,
                None => self.resolve_taken_id(start, &rpc_error).await,
            },
        }
    }

    /// Computes the start's input, with its execution marked.
    pub(crate) fn start_request(
        &self,
        start: &Start,
    ) -> serde_json::Result<StartWorkflowExecutionRequest> {
        let computation = Computation {
            execution: start.execution,
            crashed: start.crashed,
        };
        self.crash_markers.compute(computation, || {
            reach_failpoint(&start.params);
            self.build_request(start)
        })
    }

    fn build_request(&self, start: &Start) -> serde_json::Result<StartWorkflowExecutionRequest> {
        let (workflow_type, task_queue) = self.workflow_type_and_queue(&start.version.body);
        Ok(StartWorkflowExecutionRequest {
            namespace: self.options.namespace.clone(),
            identity: self.options.identity.clone(),
            workflow_id: crate::workflow_id(start.execution),
            workflow_type: Some(WorkflowType {
                name: workflow_type.to_owned(),
            }),
            task_queue: Some(TaskQueue {
                name: task_queue.to_owned(),
            }),
            input: Some(input::input(start)?),
            // A timeout too long for Temporal's type counts as none.
            workflow_execution_timeout: start
                .version
                .execution_timeout
                .and_then(|timeout| timeout.try_into().ok()),
            request_id: start_request_id(start.execution),
            workflow_id_reuse_policy: WorkflowIdReusePolicy::RejectDuplicate.into(),
            workflow_id_conflict_policy: WorkflowIdConflictPolicy::Fail.into(),
            memo: Some(input::memo(start)?),
            header: input::header(start)?,
            priority: Some(input::priority(start)),
        })
    }

    /// Returns the workflow type and task queue of a version.
    pub(crate) fn workflow_type_and_queue<'a>(
        &'a self,
        body: &'a VersionBody,
    ) -> (&'a str, &'a str) {
        match body {
            VersionBody::Graph(_) => (
                &self.options.graph_workflow_type,
                &self.options.graph_task_queue,
            ),
            VersionBody::Binding {
                workflow_type,
                task_queue,
            } => (workflow_type, task_queue),
        }
    }

    /// Finds out whether the workflow with the start's id is Leasehold's, and whether it has ended.
    async fn resolve_taken_id(&self, start: &Start, rpc_error: &RpcError) -> StartOutcome {
        match self
            .find_start(start.execution, start.request, rpc_error)
            .await
        {
            Ok(Some(latest)) => StartOutcome::AlreadyStarted {
                ended: crate::describe::end(latest).is_some(),
            },
            Ok(None) => StartOutcome::Refused {
                error: "the workflow id is in use by a workflow that Leasehold did not start"
                    .to_owned(),
            },
            Err(rpc_error) => StartOutcome::Unknown {
                error: format!(
                    "the workflow id is in use, and describing that workflow failed: {}",
                    crate::grpc_codes::engine_error(&rpc_error)
                ),
            },
        }
    }

    /// Returns the latest run's status, if this start began its chain of runs.
    ///
    /// A run that continues or retries another has its own request id. It has the memo too if its worker passed it on,
    /// which not every worker does. The first run has this start's request id, until the namespace's retention removes it.
    pub(crate) async fn find_start(
        &self,
        execution: ExecutionId,
        request: RequestId,
        rpc_error: &RpcError,
    ) -> Result<Option<WorkflowExecutionStatus>, RpcError> {
        let answer = self.describe_run(execution, "").await?;
        let latest = info(&answer)?;
        let ours = |seen: &DescribeWorkflowExecutionResponse| {
            request_ids(seen).any(|id| *id == start_request_id(execution))
                || info(seen).is_ok_and(|run| input::is_memo_of(request, run.memo.as_ref()))
        };
        let is_ours = start_request_id_of(rpc_error) == Some(start_request_id(execution))
            || ours(&answer)
            || match first_run(latest) {
                Some(first) => ours(&self.describe_run(execution, first).await?),
                None => false,
            };
        Ok(is_ours.then(|| latest.status()))
    }
}

/// Returns the first run of the chain, if it is not the latest.
fn first_run(latest: &WorkflowExecutionInfo) -> Option<&str> {
    let run = latest.execution.as_ref()?.run_id.as_str();
    Some(latest.first_run_id.as_str()).filter(|first| !first.is_empty() && *first != run)
}

fn request_ids(seen: &DescribeWorkflowExecutionResponse) -> impl Iterator<Item = &String> {
    let extended = seen.workflow_extended_info.iter();
    extended.flat_map(|extended| extended.request_id_infos.keys())
}

/// Returns the request id, which is the same for every repetition of a start, so that Temporal deduplicates them.
pub(crate) fn start_request_id(execution: ExecutionId) -> String {
    format!("start-{execution}")
}

fn start_request_id_of(rpc_error: &RpcError) -> Option<String> {
    let RpcError::Status(status) = rpc_error else {
        return None;
    };
    detail::<WorkflowExecutionAlreadyStartedFailure>(
        status,
        "WorkflowExecutionAlreadyStartedFailure",
    )
    .map(|failure| failure.start_request_id)
}
