//! Deletes finished requests and expired idempotency keys after their retention, in small batches.

use crate::SqliteStore;
use crate::row::{Columns, blob};
use async_trait::async_trait;
use leasehold_core::RequestId;
use leasehold_store::Result;
use leasehold_store::prune::{Prune, PruneStore, Pruned};
use leasehold_store::sql;
use rusqlite::params;

/// Maximum number of requests in one transaction, because claims wait for it.
const MAX_BATCH: u32 = 500;

const FINISHED: &str = sql!("prune/finished");
const KEYS: &str = sql!("prune/keys");
const DELETE: &str = sql!("request/delete");
const DELETE_EVENTS: &str = sql!("request/delete_events");

#[async_trait]
impl PruneStore for SqliteStore {
    async fn prune(&self, prune: &Prune) -> Result<Pruned> {
        let prune = *prune;
        self.write("prune", move |s| {
            let limit = prune.limit.min(MAX_BATCH);
            let row = params![
                prune.completed_before.map(|at| at.as_microsecond()),
                prune.failed_before.map(|at| at.as_microsecond()),
                limit
            ];
            let finished: Vec<RequestId> = s.all(FINISHED, row, |row| row.id("id"))?;
            for request in &finished {
                s.run(DELETE_EVENTS, [blob(*request)])?;
                s.run(DELETE, [blob(*request)])?;
            }
            let keys = s.run(KEYS, params![s.now, limit])?;
            Ok(Pruned {
                requests: u64::try_from(finished.len()).unwrap_or_default(),
                keys: u64::try_from(keys).unwrap_or_default(),
            })
        })
        .await
    }
}
