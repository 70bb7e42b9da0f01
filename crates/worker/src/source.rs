//! The port through which a worker claims, renews and finishes jobs, so that a worker does not need a database connection.

use async_trait::async_trait;
use leasehold_core::JsonText;
use leasehold_core::job::{JobClaim, JobFinish, JobFinished, JobRef, JobsClaimed, JobsRenewed};
use std::time::Duration;
use thiserror::Error;
use tokio::sync::watch;

/// The result of a call to a [`JobSource`].
pub type SourceResult<T> = Result<T, SourceError>;

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a call to a source failed. Displays as its cause.
#[derive(Debug, Error)]
pub enum SourceError {
    /// The source is unreachable or asks for a retry; the call may have taken effect. The worker retries it.
    #[error(transparent)]
    Unavailable(Cause),
    /// The source never accepts this call. The worker does not retry it.
    #[error(transparent)]
    Rejected(Cause),
}

impl SourceError {
    /// Creates an error that the worker retries.
    pub fn unavailable(cause: impl Into<Cause>) -> Self {
        Self::Unavailable(cause.into())
    }

    /// Creates an error that the worker does not retry.
    pub fn rejected(cause: impl Into<Cause>) -> Self {
        Self::Rejected(cause.into())
    }

    /// Whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unavailable(_) => true,
            Self::Rejected(_) => false,
        }
    }
}

/// The WorkQueue calls that a worker makes. The store's method of the same name documents the guarantees of each.
#[async_trait]
pub trait JobSource: Send + Sync + 'static {
    /// Claims jobs, each under a lease.
    async fn claim(&self, claim: &JobClaim) -> SourceResult<JobsClaimed>;

    /// Extends leases.
    async fn renew(
        &self,
        worker: &str,
        claims: &[JobRef],
        lease: Duration,
    ) -> SourceResult<JobsRenewed>;

    /// Finishes jobs. Returns one answer per finish, in the same order.
    async fn finish(&self, worker: &str, finishes: &[JobFinish]) -> SourceResult<Vec<JobFinished>>;

    /// Saves the progress of a job. Returns false if the lease is lost.
    async fn progress(
        &self,
        worker: &str,
        claim: JobRef,
        progress: &JsonText,
    ) -> SourceResult<bool>;

    /// Requests a notification for the next job, before the worker sleeps. Returns false if the source cannot guarantee one; the worker
    /// then polls at its poll interval.
    async fn arm_notification(&self) -> SourceResult<bool>;

    /// Subscribes to notifications: a number that changes when there may be a job to claim.
    fn subscribe(&self) -> watch::Receiver<u64>;
}
