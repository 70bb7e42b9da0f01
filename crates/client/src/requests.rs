//! Requests, dead letters and executions.

use crate::client::Client;
use crate::error::Result;
use crate::list::List;
use leasehold_api::change::{Event, Timeline};
use leasehold_api::execution::{Execution, ExecutionGraph, ExecutionNode};
use leasehold_api::request::{
    Cancel, Cancelled, Enqueued, EnqueuedMany, NewRequest, NewRequests, RedriveMany, Redriven,
    RedrivenMany, Request,
};
use leasehold_api::why::Why;
use leasehold_core::{
    DefinitionId, ExecutionId, ExecutionStatus, FailureReason, RequestId, RequestStatus,
    WorkspaceId,
};

/// Which requests to list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestFilter {
    /// In this status.
    pub status: Option<RequestStatus>,
    /// Of this definition.
    pub definition: Option<DefinitionId>,
    /// Failed for this reason.
    pub reason: Option<FailureReason>,
}

impl RequestFilter {
    fn applied(self, list: List<Request>) -> List<Request> {
        list.only("status", self.status)
            .only("definition", self.definition)
            .only("reason", self.reason)
    }
}

/// # Requests and executions
impl Client {
    /// Requests of a workspace, newest first.
    pub fn request_list(&self, workspace: WorkspaceId, filter: RequestFilter) -> List<Request> {
        let workspace = workspace.to_string();
        filter.applied(List::new(
            self,
            &["v1", "workspaces", &workspace, "requests"],
        ))
    }

    /// Requests of all workspaces, newest first.
    pub fn request_list_all(&self, filter: RequestFilter) -> List<Request> {
        filter.applied(List::new(self, &["v1", "requests"]))
    }

    /// Enqueues a request. One with an idempotency key is sent again where that may help.
    ///
    /// # Errors
    /// If something in it is not acceptable, or the call does not succeed.
    pub async fn request_enqueue(
        &self,
        workspace: WorkspaceId,
        new: &NewRequest,
    ) -> Result<Enqueued> {
        let workspace = workspace.to_string();
        let call = self.post(&["v1", "workspaces", &workspace, "requests"]);
        let call = call.repeatable(new.idempotency_key.is_some());
        call.body(new)?.json().await
    }

    /// Enqueues requests, all or none; answers are in the order asked. If all have idempotency keys it is sent again where that may help.
    ///
    /// # Errors
    /// If something in one is not acceptable, or the call does not succeed.
    pub async fn request_enqueue_many(
        &self,
        workspace: WorkspaceId,
        new: &NewRequests,
    ) -> Result<Vec<Enqueued>> {
        let workspace = workspace.to_string();
        let call = self.post(&["v1", "workspaces", &workspace, "requests", "batch"]);
        let keyed = new.requests.iter().all(|new| new.idempotency_key.is_some());
        let answer: EnqueuedMany = call.repeatable(keyed).body(new)?.json().await?;
        Ok(answer.requests)
    }

    /// A request.
    ///
    /// # Errors
    /// If there is no such request, or the call does not succeed.
    pub async fn request_get(&self, workspace: WorkspaceId, id: RequestId) -> Result<Request> {
        let (workspace, id) = (workspace.to_string(), id.to_string());
        let call = self.get(&["v1", "workspaces", &workspace, "requests", &id]);
        call.json().await
    }

    /// A request of any workspace; for administrators.
    ///
    /// # Errors
    /// If there is no such request, or the call does not succeed.
    pub async fn request_find(&self, id: RequestId) -> Result<Request> {
        self.get(&["v1", "requests", &id.to_string()]).json().await
    }

    /// Every transition of a request, in order.
    ///
    /// # Errors
    /// If there is no such request, or the call does not succeed.
    pub async fn request_timeline(
        &self,
        workspace: WorkspaceId,
        id: RequestId,
    ) -> Result<Vec<Event>> {
        let (workspace, id) = (workspace.to_string(), id.to_string());
        let path = ["v1", "workspaces", &workspace, "requests", &id, "timeline"];
        let answer: Timeline = self.get(&path).json().await?;
        Ok(answer.events)
    }

    /// Why a request is not running now.
    ///
    /// # Errors
    /// If there is no such request, or the call does not succeed.
    pub async fn request_why(&self, workspace: WorkspaceId, id: RequestId) -> Result<Why> {
        let (workspace, id) = (workspace.to_string(), id.to_string());
        let path = ["v1", "workspaces", &workspace, "requests", &id, "why"];
        self.get(&path).json().await
    }

    /// Cancels a request.
    ///
    /// # Errors
    /// If there is no such request or it has ended, or the call does not succeed.
    pub async fn request_cancel(
        &self,
        workspace: WorkspaceId,
        id: RequestId,
        how: Cancel,
    ) -> Result<Cancelled> {
        let (workspace, id) = (workspace.to_string(), id.to_string());
        let path = ["v1", "workspaces", &workspace, "requests", &id, "cancel"];
        self.post(&path).body(&how)?.json().await
    }

    /// Enqueues a failed request anew.
    ///
    /// # Errors
    /// If there is no such request, it has not failed, or a redrive of it is under way; or if the call does not succeed.
    pub async fn request_redrive(&self, workspace: WorkspaceId, id: RequestId) -> Result<Redriven> {
        let (workspace, id) = (workspace.to_string(), id.to_string());
        let path = ["v1", "workspaces", &workspace, "requests", &id, "redrive"];
        self.post(&path).json().await
    }

    /// Requests of a workspace that have failed, newest first; for one reason, or all.
    pub fn dead_letter_list(
        &self,
        workspace: WorkspaceId,
        reason: Option<FailureReason>,
    ) -> List<Request> {
        let workspace = workspace.to_string();
        List::new(self, &["v1", "workspaces", &workspace, "dead-letters"]).only("reason", reason)
    }

    /// Enqueues failed requests anew that never were, oldest first.
    ///
    /// # Errors
    /// If the call does not succeed.
    pub async fn dead_letter_redrive(
        &self,
        workspace: WorkspaceId,
        which: RedriveMany,
    ) -> Result<Vec<Redriven>> {
        let workspace = workspace.to_string();
        let call = self.post(&["v1", "workspaces", &workspace, "dead-letters", "redrive"]);
        let answer: RedrivenMany = call.body(&which)?.json().await?;
        Ok(answer.redriven)
    }

    /// Executions of a workspace, last admitted first; in one status, or all.
    pub fn execution_list(
        &self,
        workspace: WorkspaceId,
        status: Option<ExecutionStatus>,
    ) -> List<Execution> {
        let workspace = workspace.to_string();
        List::new(self, &["v1", "workspaces", &workspace, "executions"]).only("status", status)
    }

    /// An execution's graph with where each node is.
    ///
    /// # Errors
    /// If there is no such execution, or the call does not succeed.
    pub async fn execution_graph(
        &self,
        workspace: WorkspaceId,
        id: ExecutionId,
    ) -> Result<ExecutionGraph> {
        let (workspace, id) = (workspace.to_string(), id.to_string());
        let path = ["v1", "workspaces", &workspace, "executions", &id, "graph"];
        self.get(&path).json().await
    }

    /// A node of an execution, with its output however large it is.
    ///
    /// # Errors
    /// If there is no such node, or the call does not succeed.
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

    /// An execution.
    ///
    /// # Errors
    /// If there is no such execution, or the call does not succeed.
    pub async fn execution_get(
        &self,
        workspace: WorkspaceId,
        id: ExecutionId,
    ) -> Result<Execution> {
        let (workspace, id) = (workspace.to_string(), id.to_string());
        let call = self.get(&["v1", "workspaces", &workspace, "executions", &id]);
        call.json().await
    }

    /// An execution of any workspace; for administrators.
    ///
    /// # Errors
    /// If there is no such execution, or the call does not succeed.
    pub async fn execution_find(&self, id: ExecutionId) -> Result<Execution> {
        let call = self.get(&["v1", "executions", &id.to_string()]);
        call.json().await
    }

    /// Tells that an execution is ending, so that the server asks the engine sooner than it would. Nothing is believed, and nothing depends on it.
    ///
    /// # Errors
    /// If the call does not succeed.
    pub async fn execution_ended(&self, id: ExecutionId) -> Result<()> {
        let call = self.post(&["v1", "executions", &id.to_string(), "ended"]);
        call.done().await
    }
}
