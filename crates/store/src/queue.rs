//! Queues of jobs: parameters and outcomes.

use crate::store_trait::store_trait;
use crate::{Page, Result};
use leasehold_core::Timestamp;
use leasehold_core::job::JobRetry;
use leasehold_core::queue::QueueSettings;
use std::time::Duration;

store_trait! {
    /// Queues of jobs, and the limit of all of them together.
    pub trait QueueStore, observed by QueueObserver {
        /// Changes a queue's settings; a queue that is not there is made. A lower limit lets what runs finish, and a claim that
        /// commits after this one does not leave more running than it.
        async fn queue_update(&self, name: &str, change: &QueueChange) -> Result<Queue>;

        /// The queue; none if nobody used it or set it up.
        async fn queue_get(&self, name: &str) -> Result<Option<Queue>>;

        /// Queues by name.
        async fn queue_list(&self, page: &Page<String>) -> Result<Vec<Queue>>;

        /// How many jobs a queue has in each status. Counted now: the more jobs, the longer it takes.
        async fn queue_counts(&self, name: &str) -> Result<JobCounts>;

        /// What goes on in the busiest `limit` queues: most running first, then by name. What waits in each is counted up to `up_to`. More queues than
        /// [`PAGE_MAX`](leasehold_core::limits::PAGE_MAX) counts as that many.
        async fn queue_overview(&self, limit: u32, up_to: u32) -> Result<Vec<QueueUse>>;

        /// How many jobs of all queues together may run at once; none is no limit.
        async fn job_limit(&self) -> Result<Option<u32>>;

        /// Sets how many jobs of all queues together may run at once. What is said of a queue's limit holds for this one.
        async fn job_limit_set(&self, limit: Option<u32>) -> Result<()>;
    }
}

/// A queue of jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// What holds for its jobs.
    pub settings: QueueSettings,
    /// When it was first used or set up.
    pub created_at: Timestamp,
}

/// What to change of a queue; what is none stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueueChange {
    /// Its limit of running jobs, or none within for no limit.
    pub limit: Option<Option<u32>>,
    /// Whether workers get nothing from it.
    pub paused: Option<bool>,
    /// Whether completed jobs are kept.
    pub keep_completed: Option<bool>,
    /// How long a claim lasts.
    pub lease: Option<Duration>,
    /// How jobs are tried again.
    pub retry: Option<JobRetry>,
    /// How long an attempt may take, or none within for no limit.
    pub timeout: Option<Option<Duration>>,
}

/// How many jobs a queue has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobCounts {
    /// Queued, their time has come.
    pub ready: u64,
    /// Queued, their time has not come.
    pub scheduled: u64,
    /// With a worker.
    pub running: u64,
    /// Completed and kept.
    pub completed: u64,
    /// Failed.
    pub failed: u64,
}

/// What goes on in a queue now.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueUse {
    /// The queue.
    pub queue: Queue,
    /// Jobs that workers have.
    pub running: u64,
    /// Queued jobs whose time has come, counted as far as was asked.
    pub waiting: u64,
    /// Whether there are more than were counted.
    pub more_waiting: bool,
}
