//! Deletes requests and jobs that ended long ago, a batch at a time. What may go is a matter of settings; the store's clock says how old it is.

use crate::error::{Error, Result};
use crate::lock::{Lock, LockOptions};
use async_trait::async_trait;
use leasehold_core::Timestamp;
use leasehold_service::{Next, Service};
use leasehold_store::Store;
use leasehold_store::job::JobPrune;
use leasehold_store::prune::Prune;
use std::sync::Arc;
use std::time::Duration;

const LOCK: &str = "pruneFinished";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What is deleted, and when.
#[derive(Clone, Debug)]
pub struct PrunerOptions {
    /// How long completed requests and jobs are kept after their end.
    pub completed: Duration,
    /// How long failed requests and jobs are kept after their end.
    pub failed: Duration,
    /// How often to look.
    pub interval: Duration,
    /// How many of each one call deletes.
    pub batch: u32,
    /// The lock that keeps all but one instance from pruning. Pruning is safe without it.
    pub lock: LockOptions,
}

impl Default for PrunerOptions {
    fn default() -> Self {
        Self {
            completed: 7 * DAY,
            failed: 30 * DAY,
            interval: Duration::from_secs(60),
            batch: 1_000,
            lock: LockOptions::default(),
        }
    }
}

/// Deletes what ended long ago.
pub struct Pruner {
    store: Arc<dyn Store>,
    lock: Lock,
    options: PrunerOptions,
}

impl Pruner {
    /// A pruner that signs as `owner`.
    pub fn new(store: Arc<dyn Store>, owner: &str, options: PrunerOptions) -> Self {
        Self {
            lock: Lock::new(store.clone(), LOCK, owner, options.lock),
            store,
            options,
        }
    }

    /// The store's clock, as of when the lock was last kept alive: a little too early, and then less is deleted. Our own clock may be wrong by
    /// any amount, and what is deleted is gone.
    async fn now(&self) -> Result<Option<Timestamp>> {
        let locks = self.store.lock_list().await?;
        let mine = locks.iter().find(|lock| lock.name == LOCK);
        Ok(mine.and_then(|lock| before(lock.until, self.options.lock.at_most_for)))
    }
}

fn before(moment: Timestamp, by: Duration) -> Option<Timestamp> {
    moment.checked_sub(by).ok()
}

#[async_trait]
impl Service for Pruner {
    type Error = Error;

    fn name(&self) -> &'static str {
        "pruner"
    }

    async fn run_once(&self) -> Result<Next> {
        let PrunerOptions {
            completed,
            failed,
            interval,
            batch,
            ..
        } = self.options;
        if self.lock.keep().await?.is_none() {
            return Ok(Next::After(interval));
        }
        let Some(now) = self.now().await? else {
            return Ok(Next::After(interval));
        };
        let prune = Prune {
            completed_before: before(now, completed),
            failed_before: before(now, failed),
            limit: batch,
        };
        let requests = self.store.prune(&prune).await?;
        let prune = JobPrune {
            completed_before: prune.completed_before,
            failed_before: prune.failed_before,
            limit: batch,
        };
        let jobs = self.store.job_prune(&prune).await?;
        if requests.requests + requests.keys + jobs.jobs + jobs.keys == 0 {
            self.lock.rest(interval).await;
            return Ok(Next::After(interval));
        }
        tracing::debug!(
            requests = requests.requests,
            jobs = jobs.jobs,
            keys = requests.keys + jobs.keys,
            "pruned what ended long ago"
        );
        Ok(Next::Again)
    }

    async fn stopped(&self) {
        self.lock.close().await;
    }
}
