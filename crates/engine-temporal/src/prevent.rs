//! Prevents the start of an execution whose input must not be computed: takes its workflow id, and terminates what has it.

use crate::TemporalEngine;
use crate::grpc_codes::{engine_error, start_outcome};
use crate::proto::{
    StartWorkflowExecutionRequest, TaskQueue, WorkflowIdConflictPolicy, WorkflowIdReusePolicy,
    WorkflowType,
};
use crate::start::start_request_id;
use leasehold_core::{ExecutionId, RequestId};
use leasehold_engine::{Error, Result, StartPrevented};

/// The task queue and the workflow type of a workflow that only takes its id. No worker serves them, so nothing runs before it is terminated.
const NOT_SERVED: &str = "leasehold-prevented-start";

impl TemporalEngine {
    /// Starts a workflow without input under the execution's ids and terminates it. If the execution was started before, terminates that one. A late
    /// start then meets a taken id, which the reuse policy rejects.
    pub(crate) async fn prevent_workflow(
        &self,
        execution: ExecutionId,
        request: RequestId,
        reason: &str,
    ) -> Result<StartPrevented> {
        let call = StartWorkflowExecutionRequest {
            namespace: self.options.namespace.clone(),
            identity: self.options.identity.clone(),
            workflow_id: crate::workflow_id(execution),
            workflow_type: Some(WorkflowType {
                name: NOT_SERVED.to_owned(),
            }),
            task_queue: Some(TaskQueue {
                name: NOT_SERVED.to_owned(),
            }),
            request_id: start_request_id(execution),
            workflow_id_reuse_policy: WorkflowIdReusePolicy::RejectDuplicate.into(),
            workflow_id_conflict_policy: WorkflowIdConflictPolicy::Fail.into(),
            ..Default::default()
        };
        let sent = self.connection.call(self.options.call_timeout, call).await;
        if let Err(rpc_error) = sent {
            if start_outcome(&rpc_error).is_some() {
                return Err(engine_error(&rpc_error));
            }
            let found = self.find_start(execution, request, &rpc_error).await;
            if found.map_err(|error| engine_error(&error))?.is_none() {
                let text = "the workflow id is in use by a workflow that Leasehold did not start";
                return Err(Error::Failed(text.to_owned()));
            }
        }
        self.terminate_workflow(execution, reason).await?;
        Ok(StartPrevented::Ended)
    }
}
