//! Job queues: parameters and outcomes.

use crate::store_trait::store_trait;
use crate::{Actor, Page, Result};
use leasehold_core::job::JobRetry;
use leasehold_core::queue::QueueSettings;
use leasehold_core::{Timestamp, WorkspaceId};
use std::time::Duration;

store_trait! {
    /// Job queues and the limit over all queues.
    pub trait QueueStore, observed by QueueObserver {
        /// Changes the settings of a queue, which is created if it does not exist. After a limit is lowered, running jobs finish, and no later claim
        /// exceeds the new limit.
        async fn queue_update(&self, name: &str, change: &QueueChange, by: &Actor) -> Result<Queue>;

        /// Returns the queue; none if it was never used or configured.
        async fn queue_get(&self, name: &str) -> Result<Option<Queue>>;

        /// Lists queues by name.
        async fn queue_list(&self, page: &Page<String>) -> Result<Vec<Queue>>;

        /// Counts the jobs of a queue by status. The cost grows with the number of jobs.
        async fn queue_counts(&self, name: &str) -> Result<JobCounts>;

        /// Returns the bytes of the open jobs of these queues, as the store keeps them, and [`JOB_OVERHEAD_BYTES`](leasehold_core::limits::JOB_OVERHEAD_BYTES) for
        /// each. Stops when they exceed `up_to`. Unknown queues have none. The cost grows with the number of open jobs.
        async fn queue_open_bytes(&self, queues: &[String], up_to: u64) -> Result<u64>;

        /// Returns the use of the busiest `limit` queues: most running first, then by name. Waiting jobs are counted up to `up_to` per queue. `limit` is capped at
        /// [`PAGE_MAX`](leasehold_core::limits::PAGE_MAX).
        async fn queue_overview(&self, limit: u32, up_to: u32) -> Result<Vec<QueueUse>>;

        /// Returns the owner and the sharing of these queues, by name; unknown queues are left out.
        async fn queue_ownership(&self, names: &[String]) -> Result<Vec<QueueOwnership>>;

        /// Replaces whom a queue is shared with. A queue that does not exist is created for the installation. Nodes that start later are checked against
        /// the new sharing; jobs that are enqueued stay.
        async fn queue_share(&self, name: &str, with: &SharedWith, by: &Actor) -> Result<QueueShared>;

        /// Returns the first of these workspaces whose graphs may not use the queue.
        async fn queue_refused(&self, name: &str, workspaces: &[WorkspaceId]) -> Result<Option<WorkspaceId>>;

        /// Returns how many jobs of all queues together may run at once; none is no limit.
        async fn job_limit(&self) -> Result<Option<u32>>;

        /// Sets how many jobs of all queues together may run at once. A lowered limit takes effect as for [`Self::queue_update`].
        async fn job_limit_set(&self, limit: Option<u32>, by: &Actor) -> Result<()>;
    }
}

/// A job queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Its settings.
    pub settings: QueueSettings,
    /// When it was first used or configured.
    pub created_at: Timestamp,
}

/// Who owns a queue and whose graphs may use it besides the owner's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueOwnership {
    /// The queue's name.
    pub queue: String,
    /// The name of the workspace that owns it; none: the installation.
    pub owner: Option<String>,
    /// Whom it is shared with.
    pub shared_with: SharedWith,
}

/// Whom a queue is shared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SharedWith {
    /// Every workspace.
    All,
    /// The workspaces with these names, each once; in order if a store returns them.
    Workspaces(Vec<String>),
}

/// Outcome of sharing a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueShared {
    /// The new state.
    Shared(QueueOwnership),
    /// No workspace has this name; nothing was changed.
    WorkspaceNotFound(String),
}

/// A change of a queue; a field that is none stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueueChange {
    /// The limit of running jobs; `Some(None)` removes it.
    pub limit: Option<Option<u32>>,
    /// The limit of running jobs of one group; `Some(None)` removes it.
    pub group_limit: Option<Option<u32>>,
    /// Whether it is paused.
    pub paused: Option<bool>,
    /// Whether completed jobs are kept.
    pub keep_completed: Option<bool>,
    /// The lease of its claims.
    pub lease: Option<Duration>,
    /// The retry policy of its jobs.
    pub retry: Option<JobRetry>,
    /// The timeout of attempts; `Some(None)` removes it.
    pub timeout: Option<Option<Duration>>,
}

/// The jobs of a queue by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobCounts {
    /// Queued and due.
    pub ready: u64,
    /// Queued for later.
    pub scheduled: u64,
    /// Claimed by a worker.
    pub running: u64,
    /// Completed and kept.
    pub completed: u64,
    /// Failed.
    pub failed: u64,
}

/// The current use of a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueUse {
    /// The queue.
    pub queue: Queue,
    /// Jobs that workers hold.
    pub running: u64,
    /// Queued jobs that are due, counted up to the requested number.
    pub waiting: u64,
    /// Whether more jobs are due than were counted.
    pub more_waiting: bool,
}
