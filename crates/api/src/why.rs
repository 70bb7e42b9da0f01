//! Why a request is not running now.

use leasehold_core::{ExecutionId, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Why {
    /// What holds it.
    pub reason: Reason,
    /// The same in a sentence.
    pub explanation: String,
    /// Whatever else would hold it, were the reason gone.
    pub also: Vec<Reason>,
    /// How many requests of its workspace go before it; absent where it is in no line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<u32>,
    /// Whether more than `ahead` go before it: the rest were not counted.
    pub more_ahead: bool,
    /// When it may begin, if that can be guessed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub estimated_start: Option<Timestamp>,
}

/// A reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Reason {
    /// It runs.
    Running,
    /// It runs, but nobody asks for its work: its task queue has no pollers.
    NoPollers,
    /// It has ended.
    Finished,
    /// It is being started.
    Starting,
    /// Somebody cancelled it; it ends when its start is resolved.
    Cancelling,
    /// Its workspace was deleted: it fails when its turn comes.
    WorkspaceGone,
    /// Its workspace is paused.
    Paused,
    /// Its time has not come.
    NotDue {
        /// When it does.
        #[schema(value_type = String, format = DateTime)]
        until: Timestamp,
    },
    /// A start did not succeed; it is tried again later.
    BackingOff {
        /// When.
        #[schema(value_type = String, format = DateTime)]
        until: Timestamp,
        /// What went wrong.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// There is no engine to start it in.
    NoEngine,
    /// The engine is down.
    EngineDown {
        /// What it said.
        error: String,
    },
    /// All slots of its workspace are taken.
    AtCapacity {
        /// How many there are.
        limit: u32,
        /// How many are taken.
        in_use: u32,
        /// By which executions, oldest first; a hundred at most.
        #[schema(value_type = Vec<String>)]
        executions: Vec<ExecutionId>,
    },
    /// Others of its workspace go first, and there is room.
    InLine,
    /// It is the next of its workspace to be admitted.
    NextInLine,
}
