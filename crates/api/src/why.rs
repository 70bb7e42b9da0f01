//! JSON of the explanation why a request is not running.

use leasehold_core::{ExecutionId, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a request is not running.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Why {
    /// The blocking reason.
    pub reason: Reason,
    /// The explanation, for people.
    pub explanation: String,
    /// Further reasons that would block the request if the first one were gone.
    pub also: Vec<Reason>,
    /// Number of requests of the workspace ahead of it; absent if the request is not in line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<u32>,
    /// Whether more than `ahead` are ahead of it: the rest were not counted.
    pub more_ahead: bool,
    /// Estimated start, if it can be estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub estimated_start: Option<Timestamp>,
    /// Whether payloads are hidden from the key of this call: the error of a failed start is absent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub payload_hidden: bool,
}

/// A reason why a request is not running.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Reason {
    /// The request is running.
    Running,
    /// The request is running, but no worker polls its task queue.
    NoPollers,
    /// The request has ended.
    Finished,
    /// A server of a newer version has given the request a status that this server does not know.
    UnknownStatus,
    /// The request is being started.
    Starting,
    /// The request is being cancelled; it ends when its start is resolved.
    Cancelling,
    /// The workspace was deleted: the request fails when it is admitted.
    WorkspaceGone,
    /// The definition was deleted: the request fails when it is admitted.
    DefinitionGone,
    /// The workspace is paused.
    Paused,
    /// The request is not due yet.
    NotDue {
        /// When it is due.
        #[schema(value_type = String, format = DateTime)]
        until: Timestamp,
    },
    /// A start failed; it is retried later.
    BackingOff {
        /// Time of the retry.
        #[schema(value_type = String, format = DateTime)]
        until: Timestamp,
        /// The error of the start.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// No engine is configured.
    NoEngine,
    /// The engine is unavailable.
    EngineDown {
        /// The error of the engine; a text without details unless the key is an administrator's.
        error: String,
    },
    /// All slots of the workspace are in use.
    AtCapacity {
        /// Number of slots.
        limit: u32,
        /// Slots in use.
        in_use: u32,
        /// The executions that hold slots, oldest first; at most 100.
        #[schema(value_type = Vec<String>)]
        executions: Vec<ExecutionId>,
    },
    /// Other requests of the workspace are ahead of it; slots are free.
    InLine,
    /// The request is the next of its workspace to be admitted.
    NextInLine,
}
