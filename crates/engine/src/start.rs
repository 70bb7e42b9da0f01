//! A start and its five outcomes.

use leasehold_core::{DefinitionId, ExecutionId, JsonText, RequestId, Version, WorkspaceId};
use std::sync::Arc;

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
    /// The version it runs; many starts share one.
    pub version: Arc<Version>,
    /// The request's priority; higher is more urgent.
    pub priority: i16,
    /// What it runs with.
    pub params: JsonText,
    /// Where its trace goes on from, as a `traceparent`; it is handed to whoever runs it.
    pub trace: Option<String>,
    /// The trace context of whoever enqueued the request; jobs of its graph go on with it.
    pub trace_context: Option<String>,
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
