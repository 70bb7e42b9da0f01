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
use std::collections::HashMap;

/// Maximum number of requests in one transaction, because claims wait for it.
const MAX_BATCH: u32 = 500;
/// How many requests that cannot be deleted one call passes.
const MAX_BROKEN: usize = 1_000;

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
            let requests = prune_requests(s, &prune)?;
            let limit = prune.limit.min(MAX_BATCH);
            let keys =
                s.run(KEYS, params![s.now, limit])? + s.run(KEPT_KEYS, params![s.now, limit])?;
            Ok(Pruned {
                requests: u64::try_from(requests).unwrap_or_default(),
                keys: u64::try_from(keys).unwrap_or_default(),
            })
        })
        .await
    }
}

/// Deletes finished requests and returns their number. Requests that cannot be deleted do not hide others, and do not count towards the limit.
fn prune_requests(session: &Session<'_>, prune: &Prune) -> std::result::Result<usize, Fault> {
    let most = usize::try_from(prune.limit.min(MAX_BATCH)).unwrap_or(usize::MAX);
    let (mut pruned, mut tried) = (0, HashMap::new());
    while pruned < most && tried.len() < most + MAX_BROKEN {
        let rows = most - pruned + tried.len() - pruned;
        let row = params![
            prune.completed_before.map(|at| at.as_microsecond()),
            prune.failed_before.map(|at| at.as_microsecond()),
            i64::try_from(rows).unwrap_or(i64::MAX)
        ];
        let read = |row: &Row<'_>| Ok((row.id("id")?, row.get("keeps_key")?));
        let mut finished: Vec<(RequestId, bool)> = session.all(FINISHED, row, read)?;
        finished.retain(|(request, _)| !tried.contains_key(request));
        if finished.is_empty() {
            break;
        }
        let ids: Vec<RequestId> = finished.iter().map(|(request, _)| *request).collect();
        tried.extend(finished);
        let deleted = session.isolated_if_one_fails(&ids, |request| {
            prune_request(session, *request, tried[request])
        })?;
        pruned += deleted.iter().flatten().count();
        if pruned == tried.len() {
            // None is broken, so there are no others behind them.
            break;
        }
    }
    Ok(pruned)
}

fn prune_request(
    session: &Session<'_>,
    request: RequestId,
    keeps_key: bool,
) -> std::result::Result<(), Fault> {
    if keeps_key {
        keep_key(session, request)?;
    }
    session.run(DELETE_EVENTS, [blob(request)])?;
    session.run(DELETE, [blob(request)])?;
    Ok(())
}

/// Keeps the key of a request that will be deleted.
fn keep_key(session: &Session<'_>, request: RequestId) -> std::result::Result<(), Fault> {
    let params: String = session.one(PARAMS, [blob(request)], |row| Ok(row.get("params")?))?;
    let hash = JsonText::trusted(params).document_hash();
    session.run(KEEP_KEY, params![blob(request), hash])?;
    Ok(())
}
