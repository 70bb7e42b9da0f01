//! Workspaces: parameters and outcomes.

use crate::request::Counts;
use crate::store_trait::store_trait;
use crate::{Page, Result};
use leasehold_core::{Plan, Timestamp, WorkspaceId};

store_trait! {
    /// Workspaces.
    pub trait WorkspaceStore, observed by WorkspaceObserver {
        /// Makes a workspace.
        async fn workspace_create(&self, new: &NewWorkspace) -> Result<WorkspaceCreated>;

        /// The workspace, its tombstone if it was deleted, or none.
        async fn workspace_get(&self, id: WorkspaceId) -> Result<Option<Workspace>>;

        /// The workspace of this name that is not deleted, or none.
        async fn workspace_find(&self, name: &str) -> Result<Option<Workspace>>;

        /// Workspaces that are not deleted, by id.
        async fn workspace_list(&self, page: Page<WorkspaceId>) -> Result<Vec<Workspace>>;

        /// Changes plan, override or pause; none if there is no such workspace or it is deleted.
        /// A lower limit lets what runs finish and admits nothing until fewer than it hold a slot.
        async fn workspace_update(
            &self,
            id: WorkspaceId,
            change: &WorkspaceChange,
        ) -> Result<Option<Workspace>>;

        /// Puts a tombstone: nothing can be enqueued any more, what waits fails with workspace_not_found when
        /// claimed, what runs runs on. False if there is no such workspace or it was deleted already.
        async fn workspace_delete(&self, id: WorkspaceId) -> Result<bool>;

        /// Limit and use of a workspace's slots, counted now.
        async fn workspace_slots(&self, id: WorkspaceId) -> Result<Option<SlotUse>>;

        /// What goes on in all workspaces that are not deleted: exact, as of one moment, and read from what is kept of each, never from history.
        /// The busiest `limit` are shown: most CLAIMED and DISPATCHED first, then most PENDING, then by name; of equally busy ones those made
        /// first are shown. More than [`PAGE_MAX`](leasehold_core::limits::PAGE_MAX) counts as that many.
        async fn workspace_overview(&self, limit: u32) -> Result<WorkspaceOverview>;
    }
}

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
