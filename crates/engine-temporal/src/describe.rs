//! Describes a workflow and how it ended. Slots are freed on this evidence, so an unclear answer is an error.

use crate::TemporalEngine;
use crate::connection::RpcError;
use crate::grpc_codes::{engine_error, is_workflow_not_found};
use crate::proto::{
    Attributes, DescribeWorkflowExecutionRequest, DescribeWorkflowExecutionResponse, Failure,
    GetWorkflowExecutionHistoryRequest, HistoryEvent, HistoryEventFilterType, WorkflowExecution,
    WorkflowExecutionInfo, WorkflowExecutionStatus,
};
use crate::visibility::close_time;
use leasehold_core::limits::ERROR_MAX_CHARS;
use leasehold_core::text::clip;
use leasehold_core::{ExecutionEnd, ExecutionId};
use leasehold_engine::{Description, Error, Result};
use tonic::Status;

/// Maximum depth of reported failure causes.
const FAILURE_MAX_DEPTH: usize = 20;

impl TemporalEngine {
    pub(crate) async fn describe_workflow(&self, execution: ExecutionId) -> Result<Description> {
        let answer = match self.describe_run(execution, "").await {
            Ok(answer) => answer,
            Err(rpc_error) if is_workflow_not_found(&rpc_error) => {
                return Ok(Description::NotFound);
            }
            Err(rpc_error) => return Err(engine_error(&rpc_error)),
        };
        let seen = info(&answer).map_err(|rpc_error| engine_error(&rpc_error))?;
        if seen.status() == WorkflowExecutionStatus::Unspecified {
            return Err(Error::Failed(format!(
                "workflow {} has an unknown status: {}",
                crate::workflow_id(execution),
                seen.status
            )));
        }
        let Some(end) = end(seen.status()) else {
            return Ok(Description::Open);
        };
        let error = match end {
            ExecutionEnd::Completed => None,
            _ => Some(self.close_message(seen, end).await),
        };
        Ok(Description::Ended {
            end,
            error,
            at: close_time(seen),
        })
    }

    /// Describes one run, or the latest (after a retry, a reset or a continue-as-new) if `run` is empty.
    pub(crate) async fn describe_run(
        &self,
        execution: ExecutionId,
        run: &str,
    ) -> std::result::Result<DescribeWorkflowExecutionResponse, RpcError> {
        let request = DescribeWorkflowExecutionRequest {
            namespace: self.options.namespace.clone(),
            execution: Some(WorkflowExecution {
                run_id: run.to_owned(),
                ..latest_run(execution)
            }),
        };
        let sent = self.connection.call(self.options.call_timeout, request);
        sent.await
    }

    /// Returns the error text of an ended run. Falls back to a general text if its last event cannot be read.
    async fn close_message(&self, seen: &WorkflowExecutionInfo, end: ExecutionEnd) -> String {
        let request = GetWorkflowExecutionHistoryRequest {
            namespace: self.options.namespace.clone(),
            execution: seen.execution.clone(),
            history_event_filter_type: HistoryEventFilterType::CloseEvent.into(),
            skip_archival: true,
            ..GetWorkflowExecutionHistoryRequest::default()
        };
        let sent = self.connection.call(self.options.call_timeout, request);
        let last = match sent.await {
            Ok(answer) => answer
                .history
                .and_then(|history| history.events.into_iter().next_back()),
            Err(rpc_error) => {
                tracing::debug!(error = %engine_error(&rpc_error), "failed to read the last event of an ended workflow");
                None
            }
        };
        let message = last.as_ref().and_then(event_message);
        clip(
            message.as_deref().unwrap_or_else(|| general_message(end)),
            ERROR_MAX_CHARS,
        )
    }
}

pub(crate) fn info(
    answer: &DescribeWorkflowExecutionResponse,
) -> std::result::Result<&WorkflowExecutionInfo, RpcError> {
    let info = answer.workflow_execution_info.as_ref();
    info.ok_or_else(|| RpcError::Status(Status::internal("the description has no execution info")))
}

pub(crate) fn latest_run(execution: ExecutionId) -> WorkflowExecution {
    WorkflowExecution {
        workflow_id: crate::workflow_id(execution),
        run_id: String::new(),
    }
}

/// Returns how a latest run with this status ended, if it has.
pub(crate) const fn end(status: WorkflowExecutionStatus) -> Option<ExecutionEnd> {
    match status {
        WorkflowExecutionStatus::Running | WorkflowExecutionStatus::Paused => None,
        // Only visible between two runs: the next run continues.
        WorkflowExecutionStatus::ContinuedAsNew => None,
        // Unknown: callers that need certainty check for it.
        WorkflowExecutionStatus::Unspecified => None,
        WorkflowExecutionStatus::Completed => Some(ExecutionEnd::Completed),
        WorkflowExecutionStatus::Failed => Some(ExecutionEnd::Failed),
        WorkflowExecutionStatus::Canceled => Some(ExecutionEnd::Cancelled),
        WorkflowExecutionStatus::Terminated => Some(ExecutionEnd::Terminated),
        WorkflowExecutionStatus::TimedOut => Some(ExecutionEnd::TimedOut),
    }
}

fn event_message(event: &HistoryEvent) -> Option<String> {
    match event.attributes.as_ref()? {
        Attributes::WorkflowExecutionFailed(failed) => failed.failure.as_ref().map(failure_message),
        Attributes::WorkflowExecutionTerminated(terminated) => Some(
            match (terminated.reason.as_str(), terminated.identity.as_str()) {
                ("", "") => return None,
                ("", by) => format!("terminated by {by}"),
                (reason, "") => format!("terminated: {reason}"),
                (reason, by) => format!("terminated by {by}: {reason}"),
            },
        ),
        _ => None,
    }
}

/// Joins the messages of a failure and its causes with `: `.
pub(crate) fn failure_message(failure: &Failure) -> String {
    let causes = std::iter::successors(Some(failure), |failure| failure.cause.as_deref());
    let messages: Vec<&str> = causes
        .take(FAILURE_MAX_DEPTH)
        .map(|failure| failure.message.as_str())
        .filter(|message| !message.is_empty())
        .collect();
    if messages.is_empty() {
        return general_message(ExecutionEnd::Failed).to_owned();
    }
    messages.join(": ")
}

const fn general_message(end: ExecutionEnd) -> &'static str {
    match end {
        ExecutionEnd::Completed => "the workflow completed",
        ExecutionEnd::Failed => "the workflow failed",
        ExecutionEnd::TimedOut => "the workflow's execution timeout passed",
        ExecutionEnd::Cancelled => "the workflow was cancelled",
        ExecutionEnd::Terminated => "the workflow was terminated",
        ExecutionEnd::Lost => "the engine does not know the workflow",
    }
}
