//! Takes jobs whose lease has expired back into their queues: their worker died or stands still. Knows nothing of workers.

use crate::error::{Error, Result};
use async_trait::async_trait;
use leasehold_core::JobStatus;
use leasehold_service::{Next, Service};
use leasehold_store::Store;
use leasehold_store::job::ExpiredJob;
use std::sync::Arc;
use std::time::Duration;

/// How expired leases of jobs are taken back.
#[derive(Clone, Debug)]
pub struct JobSweeperOptions {
    /// How often to look.
    pub interval: Duration,
    /// How many jobs one call takes back.
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

/// Takes back jobs of dead workers.
///
/// Every instance looks, without a lock: a lock whose holder died with the workers would add its own time to theirs, and a look that finds nothing
/// is one short index scan.
pub struct JobSweeper {
    store: Arc<dyn Store>,
    options: JobSweeperOptions,
}

impl JobSweeper {
    /// A sweeper of this store's jobs.
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
            Ok(Next::Again)
        }
    }
}

fn log(job: &ExpiredJob) {
    let becomes = match job.status {
        JobStatus::Failed => "failed: its attempts are used up",
        JobStatus::Queued | JobStatus::Running | JobStatus::Completed => "queued again",
    };
    tracing::warn!(job = %job.claim.job, queue = job.queue, worker = job.worker, token = job.claim.token,
        "lease expired; the job is {becomes}");
}
