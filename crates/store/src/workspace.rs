//! Workspaces: parameters and outcomes.

use crate::request::Counts;
use leasehold_core::{Plan, Timestamp, WorkspaceId};

/// A tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// Its id.
    pub id: WorkspaceId,
    /// Its name, unique among those that are not deleted.
    pub name: String,
    /// What it pays for.
    pub plan: Plan,
    /// A concurrency limit that replaces the plan's.
    pub limit_override: Option<u32>,
    /// Whether it is held: a paused workspace admits nothing.
    pub paused: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was deleted; a deleted workspace is kept as a tombstone.
    pub deleted_at: Option<Timestamp>,
}

/// A workspace to make.
#[derive(Clone, Debug)]
pub struct NewWorkspace {
    /// Its id.
    pub id: WorkspaceId,
    /// Its name.
    pub name: String,
    /// Its plan.
    pub plan: Plan,
    /// A limit that replaces the plan's.
    pub limit_override: Option<u32>,
}

/// What became of making a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkspaceCreated {
    /// It was made.
    Created(Workspace),
    /// Another workspace has that name.
    NameTaken,
}

/// What to change of a workspace; `None` leaves a thing as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkspaceChange {
    /// Another plan.
    pub plan: Option<Plan>,
    /// Another override; `Some(None)` takes it away.
    pub limit_override: Option<Option<u32>>,
    /// Pause or resume.
    pub paused: Option<bool>,
}

/// How much of its concurrency a workspace uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotUse {
    /// The limit in force.
    pub limit: u32,
    /// Executions that hold a slot.
    pub in_use: u32,
}

/// What goes on in all workspaces at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceOverview {
    /// When this was so, by the store's clock.
    pub at: Timestamp,
    /// How many workspaces there are; deleted ones do not count.
    pub workspaces: u64,
    /// The requests of all of them.
    pub requests: Counts,
    /// The busiest of them.
    pub busiest: Vec<WorkspaceUse>,
}

/// What goes on in a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceUse {
    /// The workspace.
    pub workspace: Workspace,
    /// How much of its concurrency it uses.
    pub slots: SlotUse,
    /// Its requests.
    pub requests: Counts,
}
