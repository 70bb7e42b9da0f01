//! Caches the ids of queues and the lines that exist. Neither is ever deleted, so entries are valid as long as the epoch of the database's history: they
//! are read through a connection, and statements that insert compare the queue's name.

use crate::pool::Connection;
use crate::store::{Params, PostgresStore, sql};
use crate::transaction::OpenTransaction;
use leasehold_store::{Error, ErrorKind, Result};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Queues and lines that are known to exist.
#[derive(Debug, Default)]
pub(crate) struct QueueCache {
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    queues: HashMap<String, i32>,
    lines: HashSet<(i32, i16)>,
}

impl QueueCache {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queue(&self, name: &str) -> Option<i32> {
        self.entries().queues.get(name).copied()
    }

    /// Returns the queue ids of these lines; fails if a queue or line is not cached.
    fn lines<'a>(
        &self,
        lines: impl Iterator<Item = (&'a str, i16)>,
    ) -> std::result::Result<Vec<i32>, ()> {
        let entries = self.entries();
        lines
            .map(|(name, priority)| {
                let queue = *entries.queues.get(name).ok_or(())?;
                let exists = entries.lines.contains(&(queue, priority));
                exists.then_some(queue).ok_or(())
            })
            .collect()
    }

    /// Forgets a queue and its lines.
    pub(crate) fn forget(&self, name: &str) {
        let mut entries = self.entries();
        if let Some(id) = entries.queues.remove(name) {
            entries.lines.retain(|(queue, _)| *queue != id);
        }
    }
}

/// Returns what is known in the epoch of the connection.
pub(crate) fn of(store: &PostgresStore, client: &Connection) -> Arc<QueueCache> {
    store.jobs.queue_cache.of(client.epoch_id())
}

/// Returns the id of a queue; none if it does not exist.
pub(crate) async fn find(
    store: &PostgresStore,
    client: &Connection,
    name: &str,
) -> Result<Option<i32>> {
    let cache = of(store, client);
    match cache.queue(name) {
        Some(id) => Ok(Some(id)),
        None => Ok(load(client, &cache, &[name]).await?.remove(name)),
    }
}

/// Returns the id of a queue, creating the queue in the transaction if needed. Neither uses the cache, because what follows is not verified, nor fills it,
/// because the queue may be rolled back.
pub(crate) async fn ensure_in(
    store: &PostgresStore,
    transaction: &OpenTransaction<'_>,
    name: &str,
) -> Result<i32> {
    let names: &[&str] = &[name];
    transaction
        .execute(sql!("queue/ensure"), &[&names, &store.given_now()])
        .await?;
    let found = transaction.one(sql!("queue/ids"), &[&names]).await?;
    Ok(found.get("id"))
}

/// Returns the queue ids of these lines, in order, creating missing queues and lines.
pub(crate) async fn ensure_lines<'a>(
    store: &PostgresStore,
    client: &Connection,
    lines: impl Iterator<Item = (&'a str, i16)> + Clone,
) -> Result<Vec<i32>> {
    let cache = of(store, client);
    if let Ok(ids) = cache.lines(lines.clone()) {
        return Ok(ids);
    }
    let names: BTreeSet<&str> = lines.clone().map(|(name, _)| name).collect();
    let (mut ids, mut unknown) = (HashMap::new(), Vec::new());
    for name in names {
        match cache.queue(name) {
            Some(id) => {
                ids.insert(name.to_owned(), id);
            }
            None => unknown.push(name),
        }
    }
    if !unknown.is_empty() {
        let params: &Params<'_> = &[&unknown, &store.given_now()];
        let session = client.session();
        session.execute(sql!("queue/ensure"), params).await?;
        ids.extend(load(client, &cache, &unknown).await?);
    }
    let missing = || {
        Error::new(
            client.context,
            ErrorKind::Contended("a queue disappeared after it was created".to_owned()),
        )
    };
    let queue = |(name, _)| ids.get(name).copied().ok_or_else(missing);
    let queues: Vec<i32> = lines.clone().map(queue).collect::<Result<_>>()?;
    let by_queue: BTreeSet<(i32, i16)> = queues
        .iter()
        .copied()
        .zip(lines.map(|(_, priority)| priority))
        .collect();
    let (in_queues, priorities): (Vec<i32>, Vec<i16>) = by_queue.iter().copied().unzip();
    client
        .session()
        .execute(sql!("queue/line"), &[&in_queues, &priorities])
        .await?;
    cache.entries().lines.extend(by_queue);
    Ok(queues)
}

/// Reads the ids of those of the queues that exist.
async fn load(
    client: &Connection,
    cache: &QueueCache,
    names: &[&str],
) -> Result<HashMap<String, i32>> {
    let rows = client.session().many(sql!("queue/ids"), &[&names]).await?;
    let found: HashMap<String, i32> = rows
        .iter()
        .map(|row| (row.get("name"), row.get("id")))
        .collect();
    let known = found.iter().map(|(name, id)| (name.clone(), *id));
    cache.entries().queues.extend(known);
    Ok(found)
}
