//! What Temporal knows of a workflow, and why it ended. The proof on which slots are freed, so doubt is an error here.

use crate::TemporalEngine;
use crate::codes::{error, is_workflow_not_found};
use crate::connect::Trouble;
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

/// Causes of causes that are told; what lies deeper says little.
const FAILURE_MAX_DEPTH: usize = 20;

impl TemporalEngine {
    pub(crate) async fn describe_workflow(&self, execution: ExecutionId) -> Result<Description> {
        let answer = match self.describe_run(execution, "").await {
            Ok(answer) => answer,
            Err(trouble) if is_workflow_not_found(&trouble) => return Ok(Description::NotFound),
            Err(trouble) => return Err(error(&trouble)),
        };
        let seen = info(&answer).map_err(|trouble| error(&trouble))?;
        if seen.status() == WorkflowExecutionStatus::Unspecified {
            return Err(Error::Failed(format!(
                "{} has no status we know: {}",
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

    /// One run, or the latest if it is not named: what a retry, a reset or a continue-as-new has led to.
    pub(crate) async fn describe_run(
        &self,
        execution: ExecutionId,
        run: &str,
    ) -> std::result::Result<DescribeWorkflowExecutionResponse, Trouble> {
        let request = DescribeWorkflowExecutionRequest {
            namespace: self.options.namespace.clone(),
            execution: Some(WorkflowExecution {
                run_id: run.to_owned(),
                ..latest_run(execution)
            }),
        };
        let sent = self.link.call(self.options.call_timeout, request);
        sent.await
    }

    /// How a run ended is certain already: without its last event it is told in general words.
    async fn close_message(&self, seen: &WorkflowExecutionInfo, end: ExecutionEnd) -> String {
        let request = GetWorkflowExecutionHistoryRequest {
            namespace: self.options.namespace.clone(),
            execution: seen.execution.clone(),
            history_event_filter_type: HistoryEventFilterType::CloseEvent.into(),
            skip_archival: true,
            ..GetWorkflowExecutionHistoryRequest::default()
        };
        let sent = self.link.call(self.options.call_timeout, request);
        let last = match sent.await {
            Ok(answer) => answer
                .history
                .and_then(|history| history.events.into_iter().next_back()),
            Err(trouble) => {
                tracing::debug!(error = %error(&trouble), "the last event of an ended workflow could not be read");
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
) -> std::result::Result<&WorkflowExecutionInfo, Trouble> {
    let info = answer.workflow_execution_info.as_ref();
    info.ok_or_else(|| Trouble::Status(Status::internal("a description without its content")))
}

pub(crate) fn latest_run(execution: ExecutionId) -> WorkflowExecution {
    WorkflowExecution {
        workflow_id: crate::workflow_id(execution),
        run_id: String::new(),
    }
}

/// How a latest run of that status ended, if it did.
pub(crate) const fn end(status: WorkflowExecutionStatus) -> Option<ExecutionEnd> {
    match status {
        WorkflowExecutionStatus::Running | WorkflowExecutionStatus::Paused => None,
        // Seen only by whoever asks between two runs: the next one goes on.
        WorkflowExecutionStatus::ContinuedAsNew => None,
        // Nothing we know: whoever must know for certain checks for it.
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

/// `what went wrong: its cause: the cause of that`.
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
