//! Changing a job queue: the change is validated and merged with the queue's settings before it is stored.

use crate::job::{JobOperationError, changed_retry, check_queue, update_queue};
use leasehold_core::retry::Backoff;
use leasehold_store::Store;
use leasehold_store::queue::{Queue, QueueChange};
use std::time::Duration;

/// A change of a queue; a field that is none stays as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueueUpdate {
    /// The limit of running jobs; `Some(None)` removes it.
    pub limit: Option<Option<u32>>,
    /// Whether it is paused.
    pub paused: Option<bool>,
    /// Whether completed jobs are kept.
    pub keep_completed: Option<bool>,
    /// The lease of its claims.
    pub lease: Option<Duration>,
    /// Attempts before a job fails permanently.
    pub max_attempts: Option<u32>,
    /// The wait between attempts.
    pub backoff: Option<Backoff>,
    /// The timeout of attempts; `Some(None)` removes it.
    pub timeout: Option<Option<Duration>>,
}

/// Validates and applies a change of a queue, which is created if it does not exist.
pub async fn update(
    store: &dyn Store,
    name: &str,
    update: QueueUpdate,
) -> Result<Queue, JobOperationError> {
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
