//! Requeues jobs whose lease has expired: their worker died or stalled. Knows nothing of workers.

use crate::error::{Error, Result};
use async_trait::async_trait;
use leasehold_core::JobStatus;
use leasehold_service::{Next, Service};
use leasehold_store::Store;
use leasehold_store::job::ExpiredJob;
use std::sync::Arc;
use std::time::Duration;

/// How jobs with an expired lease are requeued.
#[derive(Clone, Debug)]
pub struct JobSweeperOptions {
    /// Time between rounds.
    pub interval: Duration,
    /// How many jobs one call requeues.
    pub batch: u32,
}

impl Default for JobSweeperOptions {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(1),
            batch: 1_000,
        }
    }
}

/// Requeues jobs of dead workers.
///
/// Every instance runs one, without a lock: a lock whose holder died together with the workers would delay the requeue further, and a round that
/// finds nothing is one short index scan.
pub struct JobSweeper {
    store: Arc<dyn Store>,
    options: JobSweeperOptions,
}

impl JobSweeper {
    /// Creates a sweeper of this store's jobs.
    pub fn new(store: Arc<dyn Store>, options: JobSweeperOptions) -> Self {
        Self { store, options }
    }
}

#[async_trait]
impl Service for JobSweeper {
    type Error = Error;

    fn name(&self) -> &'static str {
        "job sweeper"
    }

    async fn run_once(&self) -> Result<Next> {
        let expired = self.store.job_requeue_expired(self.options.batch).await?;
        expired.iter().for_each(log);
        if expired.is_empty() {
            Ok(Next::After(self.options.interval))
        } else {
            Ok(Next::Now)
        }
    }
}

fn log(job: &ExpiredJob) {
    let outcome = match job.status {
        JobStatus::Failed => "failed, attempts used up",
        JobStatus::Queued | JobStatus::Running | JobStatus::Completed => "requeued",
    };
    tracing::warn!(job = %job.claim.job, queue = job.queue, worker = job.worker, token = job.claim.token,
        "lease expired; job {outcome}");
}
