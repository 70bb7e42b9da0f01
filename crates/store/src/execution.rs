//! Executions: parameters and outcomes.

use crate::record::record;
use crate::store_trait::store_trait;
use crate::{Page, Result};
use leasehold_core::{
    DefinitionId, ExecutionEnd, ExecutionId, ExecutionStatus, FailureReason, Named, RequestId,
    RequestStatus, Timestamp, VersionId, WorkspaceId,
};

store_trait! {
    /// Executions.
    pub trait ExecutionStore, observed by ExecutionObserver {
        /// Returns the execution.
        async fn execution_get(
            &self,
            workspace: WorkspaceId,
            id: ExecutionId,
        ) -> Result<Option<Execution>>;

        /// Returns the execution of any workspace.
        async fn execution_find(&self, id: ExecutionId) -> Result<Option<Execution>>;

        /// Lists executions that match the filter, last admitted first; `page.after` is an admission number.
        async fn execution_list(
            &self,
            filter: &ExecutionFilter,
            page: Page<i64>,
        ) -> Result<Vec<Execution>>;

        /// Ends executions and their requests and frees their slots. A request that was not DISPATCHED yet passes
        /// through every status in between, with an event for each. Results are in the order of `finishes`. One whose row is
        /// locked is `Busy` and does not delay the others.
        async fn execution_finish(
            &self,
            by: &str,
            finishes: &[ExecutionFinish],
        ) -> Result<Vec<ExecutionFinished>>;

        /// Returns those of these executions that are RUNNING, in any order.
        async fn execution_list_running(&self, ids: &[ExecutionId]) -> Result<Vec<Execution>>;

        /// Lists the RUNNING executions of all workspaces, by workspace and admission.
        async fn execution_list_active(&self, page: Page<ActiveKey>) -> Result<Vec<Execution>>;
    }
}

record! {
    /// One run of a version in the engine.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Execution {
        /// Its id; in Temporal it runs as `execution-{id}`.
        pub id: ExecutionId = "id",
        /// The workspace it belongs to.
        pub workspace: WorkspaceId = "workspace_id",
        /// The request it was created for.
        pub request: RequestId = "request_id",
        /// The definition it runs.
        pub definition: DefinitionId = "definition_id",
        /// The version it runs.
        pub version: VersionId = "version_id",
        /// Its status; RUNNING holds a slot.
        pub status: Named<ExecutionStatus> = "status",
        /// Its admission number; admissions of all workspaces are numbered in order.
        pub admission: i64 = "admission",
        /// When it was admitted, or set RUNNING again by a drift repair.
        pub started_at: Timestamp = "started_at",
        /// When it ended.
        pub finished_at: Option<Timestamp> = "finished_at",
        /// The error.
        pub error: Option<String> = "error",
    }
}

/// An execution that has ended in the engine.
#[derive(Clone, Debug)]
pub struct ExecutionFinish {
    /// The execution.
    pub execution: ExecutionId,
    /// How it ended.
    pub end: ExecutionEnd,
    /// The error, if any.
    pub error: Option<String>,
}

/// Outcome of finishing an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutionFinished {
    /// Execution and request have ended, and the slot is free.
    Finished {
        /// The request.
        request: RequestId,
        /// COMPLETED or FAILED.
        status: RequestStatus,
        /// Why the request failed.
        reason: Option<FailureReason>,
    },
    /// It had already ended; nothing changed.
    AlreadyFinished,
    /// Nothing changed: another transaction has locked its row or its request's. Retry it.
    Busy,
    /// No such execution exists.
    NotFound,
}

/// The page key of a sweep over RUNNING executions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActiveKey {
    /// The workspace of the last execution.
    pub workspace: WorkspaceId,
    /// The admission number of the last execution.
    pub admission: i64,
}

/// Filter of a list of executions.
#[derive(Clone, Copy, Debug)]
pub struct ExecutionFilter {
    /// Of this workspace.
    pub workspace: WorkspaceId,
    /// Only in this status.
    pub status: Option<ExecutionStatus>,
    /// Only of this definition.
    pub definition: Option<DefinitionId>,
}
