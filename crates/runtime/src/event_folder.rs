//! Folds the events of requests, more than once a second while there are any, so that the store seldom has to add unfolded events to the figures that it
//! compares with quotas. Knows no quota.

use crate::error::{Error, Result};
use async_trait::async_trait;
use leasehold_service::{Next, Service};
use leasehold_store::{ErrorKind, Store};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Time between two folds while there are events. With the duration of a fold it stays below a second: `leasehold_enqueue` adds the unfolded events
/// to older figures, which costs more than it does after a fold.
const INTERVAL: Duration = Duration::from_millis(800);
/// Longest time between two folds that find nothing. It doubles up to this, so that an idle server sends few statements. A dispatcher that is
/// notified of a request folds at once, so events stay unfolded this long only if none claims.
const IDLE_INTERVAL: Duration = Duration::from_secs(16);

/// Folds events where no dispatcher does: while none runs, the circuit breaker is open, or every workspace is full.
///
/// Every instance runs one, without a lock: folds wait for each other, and a fold that finds nothing new is one short index scan.
pub struct EventFolder {
    store: Arc<dyn Store>,
    /// Folds in a row that found nothing.
    idle_rounds: AtomicU32,
}

impl EventFolder {
    /// Creates a folder of this store's events.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            idle_rounds: AtomicU32::new(0),
        }
    }
}

#[async_trait]
impl Service for EventFolder {
    type Error = Error;

    fn name(&self) -> &'static str {
        "event folder"
    }

    async fn run_once(&self) -> Result<Next> {
        match self.store.request_promote_due().await {
            // Another transaction folds, and takes long.
            Err(error) if matches!(error.kind, ErrorKind::Contended(_)) => {}
            promoted => {
                let promoted = promoted?;
                if promoted.folded + promoted.due == 0 {
                    let rounds = self.idle_rounds.fetch_add(1, Ordering::Relaxed);
                    let wait = INTERVAL * 2u32.saturating_pow(rounds.min(16) + 1);
                    return Ok(Next::After(wait.min(IDLE_INTERVAL)));
                }
            }
        }
        self.idle_rounds.store(0, Ordering::Relaxed);
        Ok(Next::After(INTERVAL))
    }
}
