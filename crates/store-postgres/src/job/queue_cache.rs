//! Caches the ids of queues and the lines that exist. Neither is ever deleted, so entries never expire.

use crate::store::{PostgresStore, sql};
use crate::transaction::OpenTransaction;
use leasehold_store::{Error, ErrorKind, Result};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

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
    fn queue(&self, name: &str) -> Option<i32> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.queues.get(name).copied()
    }

    /// Returns the queue ids of these lines; fails if a queue or line is not cached.
    fn lines<'a>(
        &self,
        lines: impl Iterator<Item = (&'a str, i16)>,
    ) -> std::result::Result<Vec<i32>, ()> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        lines
            .map(|(name, priority)| {
                let queue = *entries.queues.get(name).ok_or(())?;
                let exists = entries.lines.contains(&(queue, priority));
                exists.then_some(queue).ok_or(())
            })
            .collect()
    }

    fn add_queues(&self, found: impl Iterator<Item = (String, i32)>) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.queues.extend(found);
    }

    fn add_lines(&self, made: impl Iterator<Item = (i32, i16)>) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.lines.extend(made);
    }
}

/// Returns the id of a queue; none if it does not exist.
pub(crate) async fn find(
    store: &PostgresStore,
    context: &'static str,
    name: &str,
) -> Result<Option<i32>> {
    if let Some(id) = store.jobs.queue_cache.queue(name) {
        return Ok(Some(id));
    }
    load(store, context, &[name]).await?;
    Ok(store.jobs.queue_cache.queue(name))
}

/// Returns the id of a queue, creating the queue if needed.
pub(crate) async fn ensure(
    store: &PostgresStore,
    context: &'static str,
    name: &str,
) -> Result<i32> {
    if let Some(id) = store.jobs.queue_cache.queue(name) {
        return Ok(id);
    }
    create(store, context, &[name]).await?;
    let missing = || {
        Error::new(
            context,
            ErrorKind::Contended("a queue disappeared after it was created".to_owned()),
        )
    };
    store.jobs.queue_cache.queue(name).ok_or_else(missing)
}

/// Returns the id of a queue, creating the queue in the transaction if needed. Does not cache a queue that may be rolled back.
pub(crate) async fn ensure_in(
    store: &PostgresStore,
    transaction: &OpenTransaction<'_>,
    name: &str,
) -> Result<i32> {
    if let Some(id) = store.jobs.queue_cache.queue(name) {
        return Ok(id);
    }
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
    context: &'static str,
    lines: impl Iterator<Item = (&'a str, i16)> + Clone,
) -> Result<Vec<i32>> {
    if let Ok(ids) = store.jobs.queue_cache.lines(lines.clone()) {
        return Ok(ids);
    }
    let names: BTreeSet<&str> = lines.clone().map(|(name, _)| name).collect();
    let mut ids = HashMap::new();
    let unknown: Vec<&str> = names
        .iter()
        .copied()
        .filter(|name| store.jobs.queue_cache.queue(name).is_none())
        .collect();
    if !unknown.is_empty() {
        create(store, context, &unknown).await?;
    }
    for name in names {
        ids.insert(name, ensure(store, context, name).await?);
    }
    let queues: Vec<i32> = lines.clone().map(|(name, _)| ids[name]).collect();
    let by_queue: BTreeSet<(i32, i16)> = queues
        .iter()
        .copied()
        .zip(lines.map(|(_, priority)| priority))
        .collect();
    let (in_queues, priorities): (Vec<i32>, Vec<i16>) = by_queue.iter().copied().unzip();
    store
        .execute(context, sql!("queue/line"), &[&in_queues, &priorities])
        .await?;
    store.jobs.queue_cache.add_lines(by_queue.into_iter());
    Ok(queues)
}

async fn create(store: &PostgresStore, context: &'static str, names: &[&str]) -> Result<()> {
    store
        .execute(context, sql!("queue/ensure"), &[&names, &store.given_now()])
        .await?;
    load(store, context, names).await
}

async fn load(store: &PostgresStore, context: &'static str, names: &[&str]) -> Result<()> {
    let rows = store.many(context, sql!("queue/ids"), &[&names]).await?;
    store
        .jobs
        .queue_cache
        .add_queues(rows.iter().map(|row| (row.get("name"), row.get("id"))));
    Ok(())
}
