//! Workspaces: parameters and outcomes.

use crate::request::Counts;
use crate::store_trait::store_trait;
use crate::{Actor, Page, Result};
use leasehold_core::{Plan, Timestamp, WorkspaceId, WorkspaceQuota};

store_trait! {
    /// Workspaces.
    pub trait WorkspaceStore, observed by WorkspaceObserver {
        /// Creates a workspace.
        async fn workspace_create(&self, new: &NewWorkspace, by: &Actor) -> Result<WorkspaceCreated>;

        /// Returns the workspace, or its tombstone if it was deleted; none if it never existed.
        async fn workspace_get(&self, id: WorkspaceId) -> Result<Option<Workspace>>;

        /// Returns the workspace of this name, unless it is deleted.
        async fn workspace_find(&self, name: &str) -> Result<Option<Workspace>>;

        /// Lists workspaces by id, without deleted ones.
        async fn workspace_list(&self, page: Page<WorkspaceId>) -> Result<Vec<Workspace>>;

        /// Changes plan, overrides or pause; none if the workspace does not exist or is deleted.
        /// After a limit is lowered, running executions finish, and nothing is admitted until fewer than the new limit hold a slot.
        async fn workspace_update(
            &self,
            id: WorkspaceId,
            change: &WorkspaceChange,
            by: &Actor,
        ) -> Result<Option<Workspace>>;

        /// Deletes the workspace and keeps a tombstone: nothing can be enqueued, waiting requests fail with workspace_not_found when
        /// claimed, running executions continue. Its queues become the installation's and stay shared with its running executions. False if the workspace
        /// does not exist or is already deleted.
        async fn workspace_delete(&self, id: WorkspaceId, by: &Actor) -> Result<bool>;

        /// Returns the quotas of a workspace and what it uses of them; none if the workspace never existed. Exact when it returns. The open bytes are the
        /// sum over its open requests of their [`bytes`](crate::request::Request::bytes) and of what the steps of their graphs were charged.
        async fn workspace_quota(&self, id: WorkspaceId) -> Result<Option<WorkspaceQuota>>;

        /// Returns the limit and the current use of a workspace's slots.
        async fn workspace_slots(&self, id: WorkspaceId) -> Result<Option<SlotUse>>;

        /// Returns the use of all workspaces that are not deleted: exact, as of one moment, and read from maintained counts, never from history.
        /// Contains the busiest `limit`: most CLAIMED and DISPATCHED first, then most PENDING, then by name; of equally busy workspaces those created
        /// first. `limit` is capped at [`PAGE_MAX`](leasehold_core::limits::PAGE_MAX).
        async fn workspace_overview(&self, limit: u32) -> Result<WorkspaceOverview>;
    }
}

/// A tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// Its id.
    pub id: WorkspaceId,
    /// Its name, unique among workspaces that are not deleted.
    pub name: String,
    /// Its plan.
    pub plan: Plan,
    /// A concurrency limit that replaces the plan's.
    pub limit_override: Option<u32>,
    /// A maximum of PENDING requests that replaces the default.
    pub max_pending_override: Option<u64>,
    /// A maximum of open bytes that replaces the plan's.
    pub max_open_bytes_override: Option<u64>,
    /// Whether it is paused: none of its requests is admitted.
    pub paused: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was deleted; a deleted workspace is kept as a tombstone.
    pub deleted_at: Option<Timestamp>,
}

/// A workspace to create.
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

/// Outcome of creating a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkspaceCreated {
    /// The workspace was created.
    Created(Workspace),
    /// Another workspace has that name.
    NameTaken,
}

/// A change of a workspace; a field that is none stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkspaceChange {
    /// The new plan.
    pub plan: Option<Plan>,
    /// The new override; `Some(None)` removes it.
    pub limit_override: Option<Option<u32>>,
    /// The new maximum of PENDING requests; `Some(None)` removes it.
    pub max_pending_override: Option<Option<u64>>,
    /// The new maximum of open bytes; `Some(None)` removes it.
    pub max_open_bytes_override: Option<Option<u64>>,
    /// Pause or resume.
    pub paused: Option<bool>,
}

/// The slots of a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotUse {
    /// The limit in force.
    pub limit: u32,
    /// Slots in use.
    pub in_use: u32,
}

/// The use of all workspaces at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceOverview {
    /// The moment, by the store's clock.
    pub at: Timestamp,
    /// The number of workspaces, without deleted ones.
    pub workspaces: u64,
    /// The requests of all workspaces.
    pub requests: Counts,
    /// The busiest workspaces.
    pub busiest: Vec<WorkspaceUse>,
}

/// The use of a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceUse {
    /// The workspace.
    pub workspace: Workspace,
    /// Its slots.
    pub slots: SlotUse,
    /// Its requests.
    pub requests: Counts,
}
