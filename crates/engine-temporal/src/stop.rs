//! Asking a workflow to end, and ending it without asking. What it came to is for `describe` to say.

use crate::TemporalEngine;
use crate::codes::{error, is_workflow_not_found};
use crate::connect::Trouble;
use crate::describe::latest_run;
use crate::proto::{RequestCancelWorkflowExecutionRequest, TerminateWorkflowExecutionRequest};
use leasehold_core::ExecutionId;
use leasehold_core::limits::ERROR_MAX_CHARS;
use leasehold_core::text::clip;
use leasehold_engine::{Result, Told};
use tonic::Code;

impl TemporalEngine {
    pub(crate) async fn cancel_workflow(
        &self,
        execution: ExecutionId,
        reason: &str,
    ) -> Result<Told> {
        let request = RequestCancelWorkflowExecutionRequest {
            namespace: self.options.namespace.clone(),
            workflow_execution: Some(latest_run(execution)),
            identity: self.options.identity.clone(),
            // The same for every repetition, so the workflow hears it once.
            request_id: format!("cancel-{execution}"),
            reason: clip(reason, ERROR_MAX_CHARS),
        };
        let sent = self.link.call(self.options.call_timeout, request);
        told(sent.await)
    }

    pub(crate) async fn terminate_workflow(
        &self,
        execution: ExecutionId,
        reason: &str,
    ) -> Result<Told> {
        let request = TerminateWorkflowExecutionRequest {
            namespace: self.options.namespace.clone(),
            workflow_execution: Some(latest_run(execution)),
            identity: self.options.identity.clone(),
            reason: clip(reason, ERROR_MAX_CHARS),
        };
        let sent = self.link.call(self.options.call_timeout, request);
        told(sent.await)
    }
}

fn told<R>(answer: std::result::Result<R, Trouble>) -> Result<Told> {
    match answer {
        Ok(_) => Ok(Told::Told),
        Err(trouble) if is_told_already(&trouble) => Ok(Told::Told),
        Err(trouble) if is_workflow_not_found(&trouble) => Ok(Told::NotFound),
        Err(trouble) => Err(error(&trouble)),
    }
}

/// It has ended, which Temporal calls NotFound; or someone else asked it to, which it calls AlreadyExists.
fn is_told_already(trouble: &Trouble) -> bool {
    let Trouble::Status(status) = trouble else {
        return false;
    };
    match status.code() {
        Code::NotFound => status.message().contains("already completed"),
        Code::AlreadyExists => true,
        _ => false,
    }
}
