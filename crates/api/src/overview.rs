//! What goes on in the whole server at one moment.

use crate::workspace::{RequestCounts, WorkspaceState};
use leasehold_core::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What goes on now, as of a second ago at most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Overview {
    /// When this was so, by the store's clock.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// What executions are started in.
    pub engine: EngineState,
    /// How many workspaces there are.
    pub workspaces: u64,
    /// The requests of all of them.
    pub requests: RequestCounts,
    /// The workspaces with the most running, then the most waiting; fifty at most.
    pub busiest: Vec<WorkspaceState>,
    /// Queues of jobs, those with the most running first, then by name; fifty at most.
    pub queues: Vec<QueueUse>,
}

/// How an engine is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EngineState {
    /// Which it is: `embedded` or `temporal`.
    pub name: String,
    /// How it is.
    pub state: EngineHealth,
    /// What it said, if it is down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How an engine is, as this instance knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EngineHealth {
    /// It starts what is admitted.
    Well,
    /// It does not answer; nothing is admitted until it does.
    Down,
    /// This instance starts nothing in it; another may.
    NotDispatchedHere,
    /// This server has none.
    None,
}

/// What goes on in a queue of jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QueueUse {
    /// Its name.
    pub name: String,
    /// How many of its jobs may run at once; absent is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Whether workers get nothing from it.
    pub paused: bool,
    /// Jobs that a worker could have now; counted to 10,000.
    pub waiting: u64,
    /// Whether there are more than were counted.
    pub more_waiting: bool,
    /// Jobs that workers have.
    pub running: u64,
}
