//! Deletes finished requests and expired idempotency keys, and has expired partitions of the event log dropped.

use crate::row;
use crate::store::{PostgresStore, sql};
use async_trait::async_trait;
use leasehold_core::Timestamp;
use leasehold_store::Result;
use leasehold_store::prune::{Prune, PruneStore, Pruned};
use std::sync::PoisonError;

/// Requests deleted in one transaction.
const MAX_BATCH: u32 = 500;

/// Where the next call begins, so that requests that cannot be deleted, because other transactions have locked them, do not stop the pruning of
/// later ones.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PruneScan {
    completed: Option<Timestamp>,
    failed: Option<Timestamp>,
}

#[async_trait]
impl PruneStore for PostgresStore {
    async fn prune(&self, prune: &Prune) -> Result<Pruned> {
        self.advance_event_log_if_due(prune).await;
        let limit = prune.limit.min(MAX_BATCH);
        let requests = self.prune_requests(prune, limit.cast_signed()).await?;
        self.note_batch(limit > 0 && requests >= u64::from(limit));
        let keys = self
            .one(
                "prune",
                sql!("prune/keys"),
                &[&self.given_now(), &i64::from(limit)],
            )
            .await?;
        Ok(Pruned {
            requests,
            keys: row::count(&keys, "keys")?,
        })
    }
}

impl PostgresStore {
    /// Deletes requests in one transaction. If it finds none that it can delete, goes on after those it found, and at last from the beginning.
    async fn prune_requests(&self, prune: &Prune, limit: i32) -> Result<u64> {
        let mut from = self.prune_scan();
        let mut is_last_pass = from.completed.is_none() && from.failed.is_none();
        loop {
            let row = self
                .one(
                    "prune",
                    sql!("prune/requests"),
                    &[
                        &prune.completed_before,
                        &from.completed,
                        &prune.failed_before,
                        &from.failed,
                        &limit,
                    ],
                )
                .await?;
            let pruned = row::count(&row, "pruned")?;
            let more: bool = row.get("more");
            from = PruneScan::default();
            if more {
                from.completed = row::time(&row, "completed_to")?;
                from.failed = row::time(&row, "failed_to")?;
            }
            self.set_prune_scan(from);
            if pruned > 0 || limit == 0 || (!more && is_last_pass) {
                return Ok(pruned);
            }
            is_last_pass |= !more;
        }
    }

    fn prune_scan(&self) -> PruneScan {
        *self
            .prune_scan
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn set_prune_scan(&self, to: PruneScan) {
        *self
            .prune_scan
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = to;
    }
}
