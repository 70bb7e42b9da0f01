//! Executions: parameters and outcomes.

use crate::record::record;
use crate::store_trait::store_trait;
use crate::{Page, Result};
use leasehold_core::{
    DefinitionId, ExecutionEnd, ExecutionId, ExecutionStatus, FailureReason, RequestId,
    RequestStatus, Timestamp, VersionId, WorkspaceId,
};

store_trait! {
    /// Executions.
    pub trait ExecutionStore, observed by ExecutionObserver {
        /// The execution.
        async fn execution_get(
            &self,
            workspace: WorkspaceId,
            id: ExecutionId,
        ) -> Result<Option<Execution>>;

        /// The execution, whichever workspace's it is.
        async fn execution_find(&self, id: ExecutionId) -> Result<Option<Execution>>;

        /// Executions of a workspace that pass the filter, last admitted first; `page.after` is an admission.
        async fn execution_list(
            &self,
            filter: &ExecutionFilter,
            page: Page<i64>,
        ) -> Result<Vec<Execution>>;

        /// Ends executions and their requests and frees their slots. A request that was not DISPATCHED yet moves
        /// through every status on its way, an event for each. Answers are in the order asked.
        async fn execution_finish(
            &self,
            by: &str,
            finishes: &[ExecutionFinish],
        ) -> Result<Vec<ExecutionFinished>>;

        /// Those of these executions that are RUNNING, in any order.
        async fn execution_list_running(&self, ids: &[ExecutionId]) -> Result<Vec<Execution>>;

        /// RUNNING executions of all workspaces, by workspace and admission.
        async fn execution_list_active(&self, page: Page<ActiveKey>) -> Result<Vec<Execution>>;
    }
}

record! {
    /// One run of a version in the engine.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Execution {
        /// Its id; in Temporal it runs as `execution-{id}`.
        pub id: ExecutionId = "id",
        /// Whose it is.
        pub workspace: WorkspaceId = "workspace_id",
        /// The request it was created for.
        pub request: RequestId = "request_id",
        /// The definition it runs.
        pub definition: DefinitionId = "definition_id",
        /// The version it runs.
        pub version: VersionId = "version_id",
        /// Where it is; RUNNING holds a slot.
        pub status: ExecutionStatus = "status",
        /// Its place in the order of all admissions.
        pub admission: i64 = "admission",
        /// When it was admitted, or taken up again.
        pub started_at: Timestamp = "started_at",
        /// When it ended.
        pub finished_at: Option<Timestamp> = "finished_at",
        /// What went wrong.
        pub error: Option<String> = "error",
    }
}

/// An execution that the engine says has ended.
#[derive(Clone, Debug)]
pub struct ExecutionFinish {
    /// Which.
    pub execution: ExecutionId,
    /// How.
    pub end: ExecutionEnd,
    /// What went wrong, if anything.
    pub error: Option<String>,
}

/// What became of finishing an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutionFinished {
    /// Execution and request have ended and the slot is free.
    Finished {
        /// The request.
        request: RequestId,
        /// COMPLETED or FAILED.
        status: RequestStatus,
        /// Why it failed.
        reason: Option<FailureReason>,
    },
    /// It had ended before; nothing changed.
    AlreadyFinished,
    /// There is no such execution.
    NotFound,
}

/// Where a sweep over RUNNING executions goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActiveKey {
    /// The workspace of the last execution seen.
    pub workspace: WorkspaceId,
    /// Its place in the order of admissions.
    pub admission: i64,
}

/// Which executions a list shows.
#[derive(Clone, Copy, Debug)]
pub struct ExecutionFilter {
    /// Of this workspace.
    pub workspace: WorkspaceId,
    /// Only in this status.
    pub status: Option<ExecutionStatus>,
    /// Only of this definition.
    pub definition: Option<DefinitionId>,
}
