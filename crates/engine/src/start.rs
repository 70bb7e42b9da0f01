//! A start and its five outcomes.

use leasehold_core::{DefinitionId, ExecutionId, RequestId, VersionBody, VersionId, WorkspaceId};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// An execution to start. Starting the same one again is the same start.
#[derive(Clone, Debug)]
pub struct Start {
    /// The execution; it runs in Temporal as `execution-{id}`.
    pub execution: ExecutionId,
    /// The request it was admitted for.
    pub request: RequestId,
    /// Whose it is.
    pub workspace: WorkspaceId,
    /// What it runs.
    pub definition: DefinitionId,
    /// The version it runs.
    pub version: Arc<StartVersion>,
    /// The request's priority; higher is more urgent.
    pub priority: i16,
    /// What it runs with.
    pub params: Value,
    /// Where its trace goes on from, as a `traceparent`; it is handed to whoever runs it.
    pub trace: Option<String>,
}

/// What a start needs to know of a version; many starts share one.
#[derive(Clone, Debug)]
pub struct StartVersion {
    /// Its id.
    pub id: VersionId,
    /// What it runs.
    pub body: VersionBody,
    /// How long an execution may take.
    pub execution_timeout: Option<Duration>,
}

/// What became of a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartOutcome {
    /// It runs.
    Started,
    /// It was started before, by us.
    AlreadyStarted {
        /// Whether it has ended since.
        ended: bool,
    },
    /// It was definitely not started by this call, because of what was asked.
    Refused {
        /// What the engine said.
        error: String,
    },
    /// Nobody knows: the engine may be running it.
    Unknown {
        /// What went wrong.
        error: String,
    },
    /// The engine's trouble, not the request's.
    Unavailable {
        /// What went wrong.
        error: String,
        /// Whether the call may have reached the engine; if not, this call started nothing.
        reached: bool,
    },
}
