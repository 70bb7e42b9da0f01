//! A start and its five outcomes.

use leasehold_core::{DefinitionId, ExecutionId, JsonText, RequestId, Version, WorkspaceId};
use std::sync::Arc;

/// An execution to start. Repeating a start has no further effect.
#[derive(Clone, Debug)]
pub struct Start {
    /// The execution; it runs in Temporal as `execution-{id}`.
    pub execution: ExecutionId,
    /// The request it was admitted for.
    pub request: RequestId,
    /// The workspace it belongs to.
    pub workspace: WorkspaceId,
    /// The definition it runs.
    pub definition: DefinitionId,
    /// The version it runs; many starts share one.
    pub version: Arc<Version>,
    /// The request's priority; higher is more urgent.
    pub priority: i16,
    /// The params of the request.
    pub params: JsonText,
    /// Whether a process crashed while it computed the request's input. Then the input is computed with nothing beside it.
    pub crashed: bool,
    /// The `traceparent` under which its spans are created; passed to the engine.
    pub trace: Option<String>,
    /// The trace context of the caller that enqueued the request; jobs of its graph inherit it.
    pub trace_context: Option<String>,
}

/// Outcome of preventing a start. In both cases no late start of the execution runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartPrevented {
    /// It was never started, and the engine has no record of it.
    NotStarted,
    /// It has ended: before, or by this call. Describing it tells how.
    Ended,
}

/// Outcome of a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartOutcome {
    /// It was started.
    Started,
    /// An earlier call started it.
    AlreadyStarted {
        /// Whether it has ended since.
        ended: bool,
    },
    /// The engine rejected the start; this call started nothing.
    Refused {
        /// The engine's error.
        error: String,
    },
    /// The outcome is unknown: the engine may be running it.
    Unknown {
        /// The error.
        error: String,
    },
    /// The engine is unavailable, for no fault of the request.
    Unavailable {
        /// The error.
        error: String,
        /// Whether the call may have reached the engine; if not, this call started nothing.
        reached: bool,
    },
}
