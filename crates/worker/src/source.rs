//! Where a worker gets its jobs from and tells what became of them: a small port of its own, so that a worker need not sit beside the database.

use async_trait::async_trait;
use leasehold_core::{JobId, JsonText};
use leasehold_store::job::{JobClaim, JobFinish, JobFinished, JobRef, JobsClaimed};
use leasehold_store::{Result, Store};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// What a worker needs of the WorkQueue. What each call promises is said at the store's method of the same name.
#[async_trait]
pub trait JobSource: Send + Sync + 'static {
    /// Takes jobs, each under a lease.
    async fn claim(&self, claim: &JobClaim) -> Result<JobsClaimed>;

    /// Extends leases; answers which of them are still held.
    async fn renew(&self, worker: &str, claims: &[JobRef], lease: Duration) -> Result<Vec<JobId>>;

    /// Ends claims; answers are in the order asked.
    async fn finish(&self, worker: &str, finishes: &[JobFinish]) -> Result<Vec<JobFinished>>;

    /// Keeps what a worker says of its progress; false if the lease is lost.
    async fn progress(&self, worker: &str, claim: JobRef, progress: &JsonText) -> Result<bool>;

    /// Says that the worker is about to sleep until the bell changes. False where nothing promises that it will; then the worker looks from time to
    /// time.
    async fn arm(&self) -> Result<bool>;

    /// A number that changes when there may be a job to claim.
    fn bell(&self) -> watch::Receiver<u64>;
}

/// A store as a source of jobs.
pub struct StoreSource(Arc<dyn Store>);

impl StoreSource {
    /// The jobs of this store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self(store)
    }
}

#[async_trait]
impl JobSource for StoreSource {
    async fn claim(&self, claim: &JobClaim) -> Result<JobsClaimed> {
        self.0.job_claim(claim).await
    }

    async fn renew(&self, worker: &str, claims: &[JobRef], lease: Duration) -> Result<Vec<JobId>> {
        self.0.job_renew(worker, claims, lease).await
    }

    async fn finish(&self, worker: &str, finishes: &[JobFinish]) -> Result<Vec<JobFinished>> {
        leasehold_store::job::finish(&*self.0, worker, finishes).await
    }

    async fn progress(&self, worker: &str, claim: JobRef, progress: &JsonText) -> Result<bool> {
        self.0.job_progress(worker, claim, progress).await
    }

    async fn arm(&self) -> Result<bool> {
        self.0.job_arm().await
    }

    fn bell(&self) -> watch::Receiver<u64> {
        self.0.job_bell()
    }
}
