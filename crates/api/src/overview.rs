//! JSON of the overview: the current state of the whole server.

use crate::workspace::{RequestCounts, WorkspaceState};
use leasehold_core::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The current state of the whole server, at most one second old.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Overview {
    /// When it was read, by the clock of the store.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// The engine.
    pub engine: EngineState,
    /// Number of workspaces.
    pub workspaces: u64,
    /// The requests of all workspaces by status.
    pub requests: RequestCounts,
    /// The workspaces with the most running executions, then the most pending requests; at most 50.
    pub busiest: Vec<WorkspaceState>,
    /// The queues with the most running jobs, then by name; at most 50.
    pub queues: Vec<QueueUse>,
}

/// The state of the engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EngineState {
    /// `embedded`, `temporal` or `none`.
    pub name: String,
    /// Health.
    pub state: EngineHealth,
    /// The error, if the engine is down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The health of the engine, as this instance knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EngineHealth {
    /// The engine starts admitted requests.
    Well,
    /// The engine does not answer; nothing is admitted until it does.
    Down,
    /// This instance does not dispatch; another may.
    NotDispatchedHere,
    /// No engine is configured.
    None,
}

/// The current use of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QueueUse {
    /// Name.
    pub name: String,
    /// Maximum number of running jobs; absent if unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Whether claims from the queue are paused.
    pub paused: bool,
    /// Jobs that are due; counted up to 10,000.
    pub waiting: u64,
    /// Whether more jobs are due than were counted.
    pub more_waiting: bool,
    /// Running jobs.
    pub running: u64,
}
