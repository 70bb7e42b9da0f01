//! Deletes finished requests and expired idempotency keys after their retention, in small batches.

use crate::SqliteStore;
use crate::error::Fault;
use crate::row::{Columns, blob};
use crate::session::Session;
use async_trait::async_trait;
use leasehold_core::{JsonText, RequestId};
use leasehold_store::Result;
use leasehold_store::prune::{Prune, PruneStore, Pruned};
use leasehold_store::sql;
use rusqlite::{Row, params};

/// Maximum number of requests in one transaction, because claims wait for it.
const MAX_BATCH: u32 = 500;

const FINISHED: &str = sql!("prune/finished");
const KEYS: &str = sql!("prune/keys");
const KEPT_KEYS: &str = sql!("prune/kept_keys");
const KEEP_KEY: &str = sql!("prune/keep_key");
const PARAMS: &str = sql!("prune/params");
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
            let read = |row: &Row<'_>| Ok((row.id("id")?, row.get("keeps_key")?));
            let finished: Vec<(RequestId, bool)> = s.all(FINISHED, row, read)?;
            for (request, keeps_key) in &finished {
                if *keeps_key {
                    keep_key(s, *request)?;
                }
                s.run(DELETE_EVENTS, [blob(*request)])?;
                s.run(DELETE, [blob(*request)])?;
            }
            let keys =
                s.run(KEYS, params![s.now, limit])? + s.run(KEPT_KEYS, params![s.now, limit])?;
            Ok(Pruned {
                requests: u64::try_from(finished.len()).unwrap_or_default(),
                keys: u64::try_from(keys).unwrap_or_default(),
            })
        })
        .await
    }
}

/// Keeps the key of a request that will be deleted.
fn keep_key(session: &Session<'_>, request: RequestId) -> std::result::Result<(), Fault> {
    let params: String = session.one(PARAMS, [blob(request)], |row| Ok(row.get("params")?))?;
    let hash = JsonText::trusted(params).document_hash();
    session.run(KEEP_KEY, params![blob(request), hash])?;
    Ok(())
}
