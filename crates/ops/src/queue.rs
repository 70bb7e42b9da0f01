//! Changing a queue of jobs: the change is checked, and completed by what the queue has, before it is stored.

use crate::job::{JobError, changed_retry, check_queue, update_queue};
use leasehold_core::retry::Backoff;
use leasehold_store::Store;
use leasehold_store::queue::{Queue, QueueChange};
use std::time::Duration;

/// What to change of a queue; a field that is none stays as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueueUpdate {
    /// Its limit of running jobs, or none within for no limit.
    pub limit: Option<Option<u32>>,
    /// Whether workers get nothing from it.
    pub paused: Option<bool>,
    /// Whether completed jobs are kept.
    pub keep_completed: Option<bool>,
    /// How long a claim lasts.
    pub lease: Option<Duration>,
    /// How often a job is tried.
    pub max_attempts: Option<u32>,
    /// How long a failed job waits for its next attempt.
    pub backoff: Option<Backoff>,
    /// How long an attempt may take, or none within for no limit.
    pub timeout: Option<Option<Duration>>,
}

/// Checks and makes a change of a queue, which is created if it is not there.
pub async fn update(store: &dyn Store, name: &str, update: QueueUpdate) -> Result<Queue, JobError> {
    check_queue(name)?;
    let retry = changed_retry(store, name, update.max_attempts, update.backoff).await?;
    let change = QueueChange {
        limit: update.limit,
        paused: update.paused,
        keep_completed: update.keep_completed,
        lease: update.lease,
        retry,
        timeout: update.timeout,
    };
    update_queue(store, name, &change).await
}
