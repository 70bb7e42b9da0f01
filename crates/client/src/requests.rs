//! Calls about requests, dead letters and executions.

use crate::client::Client;
use crate::error::Result;
use crate::list::List;
use leasehold_api::change::Timeline;
use leasehold_api::execution::{Execution, ExecutionGraph, ExecutionNode};
use leasehold_api::request::{
    CancelOptions, CancelResult, EnqueuedRequest, EnqueuedRequests, NewRequest, NewRequests,
    RedriveMany, RedrivenRequest, RedrivenRequests, Request,
};
use leasehold_api::why::Why;
use leasehold_core::{
    DefinitionId, ExecutionId, ExecutionStatus, FailureReason, RequestId, RequestStatus,
    WorkspaceId,
};

/// A filter of request lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestFilter {
    /// Only requests with this status.
    pub status: Option<RequestStatus>,
    /// Only requests of this definition.
    pub definition: Option<DefinitionId>,
    /// Only requests that failed for this reason.
    pub reason: Option<FailureReason>,
}

impl RequestFilter {
    fn apply(self, list: List<Request>) -> List<Request> {
        list.filter("status", self.status)
            .filter("definition", self.definition)
            .filter("reason", self.reason)
    }
}

/// # Requests and executions
impl Client {
    /// Lists the requests of a workspace, newest first.
    pub fn request_list(&self, workspace: WorkspaceId, filter: RequestFilter) -> List<Request> {
        let workspace = workspace.to_string();
        filter.apply(List::new(
            self,
            &["v1", "workspaces", &workspace, "requests"],
        ))
    }

    /// Lists the requests of all workspaces, newest first.
    pub fn request_list_all(&self, filter: RequestFilter) -> List<Request> {
        filter.apply(List::new(self, &["v1", "requests"]))
    }

    /// Enqueues a request. Retries only if it has an idempotency key.
    ///
    /// # Errors
    /// Fails if a value is invalid, or the call fails.
    pub async fn request_enqueue(
        &self,
        workspace: WorkspaceId,
        new: &NewRequest,
    ) -> Result<EnqueuedRequest> {
        let workspace = workspace.to_string();
        let call = self.post(&["v1", "workspaces", &workspace, "requests"]);
        let call = call.repeatable(new.idempotency_key.is_some());
        call.body(new)?.json().await
    }

    /// Enqueues requests, all or none, and returns them in the same order. Retries only if all have idempotency keys.
    ///
    /// # Errors
    /// Fails if a value of one is invalid, or the call fails.
    pub async fn request_enqueue_many(
        &self,
        workspace: WorkspaceId,
        new: &NewRequests,
    ) -> Result<Vec<EnqueuedRequest>> {
        let workspace = workspace.to_string();
        let call = self.post(&["v1", "workspaces", &workspace, "requests", "batch"]);
        let keyed = new.requests.iter().all(|new| new.idempotency_key.is_some());
        let answer: EnqueuedRequests = call.repeatable(keyed).body(new)?.json().await?;
        Ok(answer.requests)
    }

    /// Returns a request.
    ///
    /// # Errors
    /// Fails if there is no such request, or the call fails.
    pub async fn request_get(&self, workspace: WorkspaceId, id: RequestId) -> Result<Request> {
        let (workspace, id) = (workspace.to_string(), id.to_string());
        let call = self.get(&["v1", "workspaces", &workspace, "requests", &id]);
        call.json().await
    }

    /// Returns a request of any workspace. Requires an administrator key.
    ///
    /// # Errors
    /// Fails if there is no such request, or the call fails.
    pub async fn request_find(&self, id: RequestId) -> Result<Request> {
        self.get(&["v1", "requests", &id.to_string()]).json().await
    }

    /// Returns every transition of a request whose event is kept, in order.
    ///
    /// # Errors
    /// Fails if there is no such request, or the call fails.
    pub async fn request_timeline(
        &self,
        workspace: WorkspaceId,
        id: RequestId,
    ) -> Result<Timeline> {
        let (workspace, id) = (workspace.to_string(), id.to_string());
        let path = ["v1", "workspaces", &workspace, "requests", &id, "timeline"];
        self.get(&path).json().await
    }

    /// Explains why a request is not running.
    ///
    /// # Errors
    /// Fails if there is no such request, or the call fails.
    pub async fn request_why(&self, workspace: WorkspaceId, id: RequestId) -> Result<Why> {
        let (workspace, id) = (workspace.to_string(), id.to_string());
        let path = ["v1", "workspaces", &workspace, "requests", &id, "why"];
        self.get(&path).json().await
    }

    /// Cancels a request.
    ///
    /// # Errors
    /// Fails if there is no such request, it has ended, or the call fails.
    pub async fn request_cancel(
        &self,
        workspace: WorkspaceId,
        id: RequestId,
        options: CancelOptions,
    ) -> Result<CancelResult> {
        let (workspace, id) = (workspace.to_string(), id.to_string());
        let path = ["v1", "workspaces", &workspace, "requests", &id, "cancel"];
        self.post(&path).body(&options)?.json().await
    }

    /// Redrives a failed request.
    ///
    /// # Errors
    /// Fails if there is no such request, it has not failed, it was redriven already, or the call fails.
    pub async fn request_redrive(
        &self,
        workspace: WorkspaceId,
        id: RequestId,
    ) -> Result<RedrivenRequest> {
        let (workspace, id) = (workspace.to_string(), id.to_string());
        let path = ["v1", "workspaces", &workspace, "requests", &id, "redrive"];
        self.post(&path).json().await
    }

    /// Lists the failed requests of a workspace, newest first; of one reason or definition, or all.
    pub fn dead_letter_list(
        &self,
        workspace: WorkspaceId,
        reason: Option<FailureReason>,
        definition: Option<DefinitionId>,
    ) -> List<Request> {
        let workspace = workspace.to_string();
        List::new(self, &["v1", "workspaces", &workspace, "dead-letters"])
            .filter("reason", reason)
            .filter("definition", definition)
    }

    /// Redrives failed requests that were not redriven before, oldest first. A call may redrive fewer than its limit, because of their bytes or the quotas of the
    /// workspace; it returns none when none are left.
    ///
    /// # Errors
    /// Fails if the call fails.
    pub async fn dead_letter_redrive(
        &self,
        workspace: WorkspaceId,
        filter: RedriveMany,
    ) -> Result<Vec<RedrivenRequest>> {
        let workspace = workspace.to_string();
        let call = self.post(&["v1", "workspaces", &workspace, "dead-letters", "redrive"]);
        let answer: RedrivenRequests = call.body(&filter)?.json().await?;
        Ok(answer.redriven)
    }

    /// Lists the executions of a workspace, last admitted first; of one status, or all.
    pub fn execution_list(
        &self,
        workspace: WorkspaceId,
        status: Option<ExecutionStatus>,
    ) -> List<Execution> {
        let workspace = workspace.to_string();
        List::new(self, &["v1", "workspaces", &workspace, "executions"]).filter("status", status)
    }

    /// Returns an execution's graph with the state of each node.
    ///
    /// # Errors
    /// Fails if there is no such execution, or the call fails.
    pub async fn execution_graph(
        &self,
        workspace: WorkspaceId,
        id: ExecutionId,
    ) -> Result<ExecutionGraph> {
        let (workspace, id) = (workspace.to_string(), id.to_string());
        let path = ["v1", "workspaces", &workspace, "executions", &id, "graph"];
        self.get(&path).json().await
    }

    /// Returns a node of an execution with its full output.
    ///
    /// # Errors
    /// Fails if there is no such node, or the call fails.
    pub async fn execution_node(
        &self,
        workspace: WorkspaceId,
        id: ExecutionId,
        node: &str,
    ) -> Result<ExecutionNode> {
        let (workspace, id) = (workspace.to_string(), id.to_string());
        let path = [
            "v1",
            "workspaces",
            &workspace,
            "executions",
            &id,
            "nodes",
            node,
        ];
        self.get(&path).json().await
    }

    /// Returns an execution.
    ///
    /// # Errors
    /// Fails if there is no such execution, or the call fails.
    pub async fn execution_get(
        &self,
        workspace: WorkspaceId,
        id: ExecutionId,
    ) -> Result<Execution> {
        let (workspace, id) = (workspace.to_string(), id.to_string());
        let call = self.get(&["v1", "workspaces", &workspace, "executions", &id]);
        call.json().await
    }

    /// Returns an execution of any workspace. Requires an administrator key.
    ///
    /// # Errors
    /// Fails if there is no such execution, or the call fails.
    pub async fn execution_find(&self, id: ExecutionId) -> Result<Execution> {
        let call = self.get(&["v1", "executions", &id.to_string()]);
        call.json().await
    }

    /// Hints that an execution has ended, so that the server describes it in the engine sooner. Only a hint: the server does not rely on it.
    ///
    /// # Errors
    /// Fails if the call fails.
    pub async fn execution_ended(&self, id: ExecutionId) -> Result<()> {
        let call = self.post(&["v1", "executions", &id.to_string(), "ended"]);
        call.done().await
    }
}
