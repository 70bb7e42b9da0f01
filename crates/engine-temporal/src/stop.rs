//! Cancels and terminates workflows. `describe` reports how they ended.

use crate::TemporalEngine;
use crate::connection::RpcError;
use crate::describe::latest_run;
use crate::grpc_codes::{engine_error, is_workflow_not_found};
use crate::proto::{RequestCancelWorkflowExecutionRequest, TerminateWorkflowExecutionRequest};
use leasehold_core::ExecutionId;
use leasehold_core::limits::ERROR_MAX_CHARS;
use leasehold_core::text::clip;
use leasehold_engine::{Result, StopAck};
use tonic::Code;

impl TemporalEngine {
    pub(crate) async fn cancel_workflow(
        &self,
        execution: ExecutionId,
        reason: &str,
    ) -> Result<StopAck> {
        let request = RequestCancelWorkflowExecutionRequest {
            namespace: self.options.namespace.clone(),
            workflow_execution: Some(latest_run(execution)),
            identity: self.options.identity.clone(),
            // The same for every repetition, so that Temporal deduplicates them.
            request_id: format!("cancel-{execution}"),
            reason: clip(reason, ERROR_MAX_CHARS),
        };
        let sent = self.connection.call(self.options.call_timeout, request);
        stop_ack(sent.await)
    }

    pub(crate) async fn terminate_workflow(
        &self,
        execution: ExecutionId,
        reason: &str,
    ) -> Result<StopAck> {
        let request = TerminateWorkflowExecutionRequest {
            namespace: self.options.namespace.clone(),
            workflow_execution: Some(latest_run(execution)),
            identity: self.options.identity.clone(),
            reason: clip(reason, ERROR_MAX_CHARS),
        };
        let sent = self.connection.call(self.options.call_timeout, request);
        stop_ack(sent.await)
    }
}

fn stop_ack<R>(answer: std::result::Result<R, RpcError>) -> Result<StopAck> {
    match answer {
        Ok(_) => Ok(StopAck::Acknowledged),
        Err(rpc_error) if is_already_stopped(&rpc_error) => Ok(StopAck::Acknowledged),
        Err(rpc_error) if is_workflow_not_found(&rpc_error) => Ok(StopAck::NotFound),
        Err(rpc_error) => Err(engine_error(&rpc_error)),
    }
}

/// Whether the workflow has ended (Temporal returns NotFound), or another cancel request is pending (AlreadyExists).
fn is_already_stopped(rpc_error: &RpcError) -> bool {
    let RpcError::Status(status) = rpc_error else {
        return false;
    };
    match status.code() {
        Code::NotFound => status.message().contains("already completed"),
        Code::AlreadyExists => true,
        _ => false,
    }
}
