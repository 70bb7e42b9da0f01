//! Deletes finished requests and expired idempotency keys.

use crate::row;
use crate::store::{PostgresStore, sql};
use async_trait::async_trait;
use leasehold_store::Result;
use leasehold_store::prune::{Prune, PruneStore, Pruned};

/// Requests deleted in one transaction; claims wait for it.
const MAX_BATCH: u32 = 500;

#[async_trait]
impl PruneStore for PostgresStore {
    async fn prune(&self, prune: &Prune) -> Result<Pruned> {
        let limit = prune.limit.min(MAX_BATCH).cast_signed();
        let row = self
            .one(
                "prune",
                sql!("prune/requests"),
                &[&prune.completed_before, &prune.failed_before, &limit],
            )
            .await?;
        let keys = self
            .one(
                "prune",
                sql!("prune/keys"),
                &[&self.given_now(), &i64::from(limit)],
            )
            .await?;
        Ok(Pruned {
            requests: row::count(&row, "pruned")?,
            keys: row::count(&keys, "keys")?,
        })
    }
}
