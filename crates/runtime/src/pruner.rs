//! Deletes finished requests, jobs and entries of the audit log after their retention time, a batch at a time. Settings give the retention; the store's clock gives the age.

use crate::error::{Error, Result};
use crate::lock::{LockOptions, NamedLock};
use async_trait::async_trait;
use leasehold_core::Timestamp;
use leasehold_service::{Next, Service};
use leasehold_store::Store;
use leasehold_store::job::JobPrune;
use leasehold_store::prune::Prune;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const LOCK: &str = "pruneFinished";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Retention of finished requests, jobs and the audit log.
#[derive(Clone, Debug)]
pub struct PrunerOptions {
    /// How long completed requests and jobs are kept after their end.
    pub completed: Duration,
    /// How long failed requests and jobs are kept after their end.
    pub failed: Duration,
    /// How long entries of the audit log are kept.
    pub audit: Duration,
    /// Time between rounds.
    pub interval: Duration,
    /// The prune batch size: how many requests and how many jobs one call deletes.
    pub batch: u32,
    /// The lock that lets one instance prune at a time. Pruning is safe without it.
    pub lock: LockOptions,
}

impl Default for PrunerOptions {
    fn default() -> Self {
        Self {
            completed: 7 * DAY,
            failed: 30 * DAY,
            audit: 365 * DAY,
            interval: Duration::from_secs(60),
            batch: 1_000,
            lock: LockOptions::default(),
        }
    }
}

/// Deletes finished requests, jobs and entries of the audit log after their retention time.
pub struct Pruner {
    store: Arc<dyn Store>,
    lock: NamedLock,
    options: PrunerOptions,
}

impl Pruner {
    /// Creates a pruner whose lock belongs to `owner`.
    pub fn new(store: Arc<dyn Store>, owner: &str, options: PrunerOptions) -> Self {
        Self {
            lock: NamedLock::new(store.clone(), LOCK, owner, options.lock),
            store,
            options,
        }
    }

    /// Returns the store's time when the lock was last extended. It is slightly early, which deletes less. The clock of this machine is not used:
    /// it may be wrong, and a deletion cannot be undone.
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
            audit,
            interval,
            batch,
            ..
        } = self.options;
        if self.lock.acquire_or_extend().await?.is_none() {
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
        let begun = Instant::now();
        let requests = self.store.prune(&prune).await?;
        let prune = JobPrune {
            completed_before: prune.completed_before,
            failed_before: prune.failed_before,
            limit: batch,
        };
        let jobs = self.store.job_prune(&prune).await?;
        let entries = match before(now, audit) {
            Some(before) => self.store.audit_prune(before, batch).await?,
            None => 0,
        };
        if requests.requests + requests.keys + jobs.jobs + jobs.keys + entries == 0 {
            self.lock.release_before(interval).await;
            return Ok(Next::After(interval));
        }
        tracing::debug!(
            requests = requests.requests,
            jobs = jobs.jobs,
            keys = requests.keys + jobs.keys,
            audit_entries = entries,
            "pruned finished requests, jobs and audit entries"
        );
        // Leaves claims half of the database's time while much is pruned.
        Ok(Next::After(begun.elapsed()))
    }

    async fn stopped(&self) {
        self.lock.close().await;
    }
}
