//! Queues of jobs: parameters and outcomes.

use leasehold_core::Timestamp;
use leasehold_core::job::JobRetry;
use leasehold_core::queue::QueueSettings;
use std::time::Duration;

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
