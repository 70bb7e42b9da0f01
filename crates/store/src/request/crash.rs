//! Crashes of processes that were computing inputs of requests: parameters and outcomes.

use leasehold_core::{
    Crashes, DefinitionId, ExecutionId, JsonText, Named, RequestId, RequestStatus, VersionId,
    WorkspaceId,
};

/// The `last_error` of a request whose input a process was computing when it crashed.
pub const CRASHED: &str = "the server crashed while it computed the input of this request";

/// A crash of a process, as its markers tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crash {
    /// The unique name of the crashed process.
    pub process: String,
    /// The executions whose inputs it was computing, each once.
    pub executions: Vec<ExecutionId>,
}

impl Crash {
    /// Returns whether the process was computing one input only.
    pub fn is_alone(&self) -> bool {
        self.executions.len() == 1
    }
}

/// An open request on which a crash was noted, with everything needed to compute its input again.
#[derive(Clone, Debug, PartialEq)]
pub struct CrashedRequest {
    /// The request.
    pub id: RequestId,
    /// The workspace it belongs to.
    pub workspace: WorkspaceId,
    /// The definition it runs.
    pub definition: DefinitionId,
    /// The version it is pinned to.
    pub version: VersionId,
    /// Its execution.
    pub execution: ExecutionId,
    /// PENDING, CLAIMED or DISPATCHED.
    pub status: Named<RequestStatus>,
    /// Higher is served first.
    pub priority: i16,
    /// The params, as a claim returns them; null if they cannot be read.
    pub params: JsonText,
    /// The caller's trace context.
    pub trace_context: Option<String>,
    /// The crashes so far, with this one.
    pub crashes: Crashes,
}
