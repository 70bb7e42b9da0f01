//! Takes claims whose lease has expired back to PENDING as unknown starts: a dispatcher died or stands still.

use crate::error::{Error, Result};
use crate::lock::{Lock, LockOptions};
use async_trait::async_trait;
use leasehold_service::{Next, Service};
use leasehold_store::Store;
use std::sync::Arc;
use std::time::Duration;

/// The lock's name, as the design documents call it.
const LOCK: &str = "recoverStaleQueueItems";

/// How recovery works.
#[derive(Clone, Debug)]
pub struct RecovererOptions {
    /// How often to look.
    pub interval: Duration,
    /// How many claims one call takes back.
    pub batch: u32,
    /// How long a claim holds; only to be said.
    pub lease: Duration,
    /// The lock that keeps instances from looking all at once. Recovery is safe without it.
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

/// Takes back expired claims.
pub struct Recoverer {
    store: Arc<dyn Store>,
    owner: String,
    lock: Lock,
    options: RecovererOptions,
}

impl Recoverer {
    /// A recoverer that signs as `owner`.
    pub fn new(store: Arc<dyn Store>, owner: &str, options: RecovererOptions) -> Self {
        Self {
            lock: Lock::new(store.clone(), LOCK, owner, options.lock),
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
        if self.lock.keep().await?.is_none() {
            return Ok(Next::After(self.options.interval));
        }
        let recovered = self
            .store
            .request_recover(&self.owner, self.options.batch)
            .await?;
        if recovered.is_empty() {
            self.lock.rest(self.options.interval).await;
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
                "claim expired; the start is unknown and will be repeated");
        }
        Ok(Next::Again)
    }

    async fn stopped(&self) {
        self.lock.close().await;
    }
}
