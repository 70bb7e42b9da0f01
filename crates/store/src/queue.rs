//! Job queues: parameters and outcomes.

use crate::store_trait::store_trait;
use crate::{Page, Result};
use leasehold_core::Timestamp;
use leasehold_core::job::JobRetry;
use leasehold_core::queue::QueueSettings;
use std::time::Duration;

store_trait! {
    /// Job queues and the limit over all queues.
    pub trait QueueStore, observed by QueueObserver {
        /// Changes the settings of a queue, which is created if it does not exist. After a limit is lowered, running jobs finish, and no later claim
        /// exceeds the new limit.
        async fn queue_update(&self, name: &str, change: &QueueChange) -> Result<Queue>;

        /// Returns the queue; none if it was never used or configured.
        async fn queue_get(&self, name: &str) -> Result<Option<Queue>>;

        /// Lists queues by name.
        async fn queue_list(&self, page: &Page<String>) -> Result<Vec<Queue>>;

        /// Counts the jobs of a queue by status. The cost grows with the number of jobs.
        async fn queue_counts(&self, name: &str) -> Result<JobCounts>;

        /// Returns the use of the busiest `limit` queues: most running first, then by name. Waiting jobs are counted up to `up_to` per queue. `limit` is capped at
        /// [`PAGE_MAX`](leasehold_core::limits::PAGE_MAX).
        async fn queue_overview(&self, limit: u32, up_to: u32) -> Result<Vec<QueueUse>>;

        /// Returns how many jobs of all queues together may run at once; none is no limit.
        async fn job_limit(&self) -> Result<Option<u32>>;

        /// Sets how many jobs of all queues together may run at once. A lowered limit takes effect as for [`Self::queue_update`].
        async fn job_limit_set(&self, limit: Option<u32>) -> Result<()>;
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

/// A change of a queue; a field that is none stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueueChange {
    /// The limit of running jobs; `Some(None)` removes it.
    pub limit: Option<Option<u32>>,
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
