//! Changing a job queue: its settings, which are validated and merged before they are stored, and whom it is shared with.

use crate::checks::{self, InvalidField};
use crate::job::{Field, JobOperationError, changed_retry, check_queue_field, update_queue};
use leasehold_core::limits::{NAME_MAX_CHARS, QUEUE_SHARE_MAX_WORKSPACES};
use leasehold_core::queue::check_user_queue;
use leasehold_core::retry::Backoff;
use leasehold_core::text::TextProblem;
use leasehold_store::queue::{Queue, QueueChange, QueueOwnership, QueueShared, SharedWith};
use leasehold_store::{Actor, Store};
use std::time::Duration;
use thiserror::Error;

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
    by: &Actor,
) -> Result<Queue, JobOperationError> {
    check_queue_field(&Field::default(), name)?;
    let retry = changed_retry(store, name, update.max_attempts, update.backoff).await?;
    let change = QueueChange {
        limit: update.limit,
        group_limit: None,
        paused: update.paused,
        keep_completed: update.keep_completed,
        lease: update.lease,
        retry,
        timeout: update.timeout,
    };
    update_queue(store, name, &change, by).await
}

/// Why the sharing of a queue was not changed.
#[derive(Debug, Error)]
pub enum ShareError {
    /// The queue's name is invalid or reserved.
    #[error("queue {0}")]
    Queue(TextProblem),
    /// A workspace's name is invalid.
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    /// Too many workspaces.
    #[error(
        "a queue can be shared with at most {QUEUE_SHARE_MAX_WORKSPACES} named workspaces, not {0}; share it with all"
    )]
    Count(usize),
    /// No workspace has this name.
    #[error("workspace `{0}` not found")]
    WorkspaceNotFound(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] leasehold_store::Error),
}

/// Replaces whom a queue is shared with and returns the queue's new ownership. A queue that does not exist is created for the installation.
pub async fn share(
    store: &dyn Store,
    name: &str,
    with: &SharedWith,
    by: &Actor,
) -> Result<QueueOwnership, ShareError> {
    check_user_queue(name).map_err(ShareError::Queue)?;
    if let SharedWith::Workspaces(names) = with {
        if names.len() > QUEUE_SHARE_MAX_WORKSPACES {
            return Err(ShareError::Count(names.len()));
        }
        for (index, name) in names.iter().enumerate() {
            checks::text(format!("shared_with[{index}]"), name, NAME_MAX_CHARS)?;
        }
    }
    match store.queue_share(name, with, by).await? {
        QueueShared::Shared(ownership) => Ok(ownership),
        QueueShared::WorkspaceNotFound(name) => Err(ShareError::WorkspaceNotFound(name)),
    }
}

/// Returns the owner and the sharing of these queues, by name; unknown queues are left out.
pub async fn ownership(
    store: &dyn Store,
    names: &[String],
) -> leasehold_store::Result<Vec<QueueOwnership>> {
    store.queue_ownership(names).await
}
