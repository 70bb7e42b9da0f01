//! Executions: parameters and outcomes.

use leasehold_core::{
    DefinitionId, ExecutionEnd, ExecutionId, ExecutionStatus, FailureReason, RequestId,
    RequestStatus, Timestamp, VersionId, WorkspaceId,
};

/// One run of a version in the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    /// Its id; in Temporal it runs as `execution-{id}`.
    pub id: ExecutionId,
    /// Whose it is.
    pub workspace: WorkspaceId,
    /// The request it was created for.
    pub request: RequestId,
    /// The definition it runs.
    pub definition: DefinitionId,
    /// The version it runs.
    pub version: VersionId,
    /// Where it is; RUNNING holds a slot.
    pub status: ExecutionStatus,
    /// Its place in the order of all admissions.
    pub admission: i64,
    /// When it was admitted, or taken up again.
    pub started_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// What went wrong.
    pub error: Option<String>,
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
