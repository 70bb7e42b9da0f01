//! Where a worker gets its jobs from and tells what became of them: a small port of its own, so that a worker need not sit beside the database.

use async_trait::async_trait;
use leasehold_core::job::{JobClaim, JobFinish, JobFinished, JobRef, JobsClaimed};
use leasehold_core::{JobId, JsonText};
use std::time::Duration;
use thiserror::Error;
use tokio::sync::watch;

/// What an answer of a source brings.
pub type SourceResult<T> = Result<T, SourceError>;

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a source did not do what a worker asked for. Its text is the cause's.
#[derive(Debug, Error)]
pub enum SourceError {
    /// The source cannot be reached or asks for another try; the call may have taken effect. The worker repeats it.
    #[error(transparent)]
    Unavailable(Cause),
    /// The source never accepts this call. The worker does not repeat it.
    #[error(transparent)]
    Rejected(Cause),
}

impl SourceError {
    /// An error that the same call may not meet later.
    pub fn unavailable(cause: impl Into<Cause>) -> Self {
        Self::Unavailable(cause.into())
    }

    /// An error that every repetition of the call meets.
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

/// What a worker needs of the WorkQueue. What each call promises is said at the store's method of the same name.
#[async_trait]
pub trait JobSource: Send + Sync + 'static {
    /// Takes jobs, each under a lease.
    async fn claim(&self, claim: &JobClaim) -> SourceResult<JobsClaimed>;

    /// Extends leases; answers which of them are still held.
    async fn renew(
        &self,
        worker: &str,
        claims: &[JobRef],
        lease: Duration,
    ) -> SourceResult<Vec<JobId>>;

    /// Ends claims; answers are in the order asked.
    async fn finish(&self, worker: &str, finishes: &[JobFinish]) -> SourceResult<Vec<JobFinished>>;

    /// Keeps what a worker says of its progress; false if the lease is lost.
    async fn progress(
        &self,
        worker: &str,
        claim: JobRef,
        progress: &JsonText,
    ) -> SourceResult<bool>;

    /// Says that the worker is about to sleep until the bell changes. False where nothing promises that it will; then the worker looks from time to
    /// time.
    async fn arm(&self) -> SourceResult<bool>;

    /// A number that changes when there may be a job to claim.
    fn bell(&self) -> watch::Receiver<u64>;
}
