//! Returns claims whose lease has expired to PENDING as unknown starts: their dispatcher died or stalled.

use crate::error::{Error, Result};
use crate::lock::{LockOptions, NamedLock};
use async_trait::async_trait;
use leasehold_service::{Next, Service};
use leasehold_store::Store;
use std::sync::Arc;
use std::time::Duration;

/// The lock's name; fixed, since other programs may read it from the lock table.
const LOCK: &str = "recoverStaleQueueItems";

/// How the recoverer works.
#[derive(Clone, Debug)]
pub struct RecovererOptions {
    /// Time between rounds.
    pub interval: Duration,
    /// How many claims one call recovers.
    pub batch: u32,
    /// The lease of a claim; only logged.
    pub lease: Duration,
    /// The lock that lets one instance recover at a time. Recovery is safe without it.
    pub lock: LockOptions,
}

impl Default for RecovererOptions {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(5),
            batch: 1_000,
            lease: Duration::from_secs(15),
            lock: LockOptions::default(),
        }
    }
}

/// Returns expired claims to PENDING.
pub struct Recoverer {
    store: Arc<dyn Store>,
    owner: String,
    lock: NamedLock,
    options: RecovererOptions,
}

impl Recoverer {
    /// Creates a recoverer that writes as `owner`.
    pub fn new(store: Arc<dyn Store>, owner: &str, options: RecovererOptions) -> Self {
        Self {
            lock: NamedLock::new(store.clone(), LOCK, owner, options.lock),
            owner: owner.to_owned(),
            store,
            options,
        }
    }
}

#[async_trait]
impl Service for Recoverer {
    type Error = Error;

    fn name(&self) -> &'static str {
        "recoverer"
    }

    async fn run_once(&self) -> Result<Next> {
        if self.lock.acquire_or_extend().await?.is_none() {
            return Ok(Next::After(self.options.interval));
        }
        let recovered = self
            .store
            .request_recover(&self.owner, self.options.batch)
            .await?;
        if recovered.is_empty() {
            self.lock.release_before(self.options.interval).await;
            return Ok(Next::After(self.options.interval));
        }
        tracing::warn!(
            count = recovered.len(),
            timeout = ?self.options.lease,
            "Recovered {} stale queue items",
            recovered.len()
        );
        for item in &recovered {
            tracing::debug!(request = %item.request, workspace = %item.workspace, execution = %item.execution,
                "claim expired; start unknown, will be repeated");
        }
        Ok(Next::Now)
    }

    async fn stopped(&self) {
        self.lock.close().await;
    }
}
