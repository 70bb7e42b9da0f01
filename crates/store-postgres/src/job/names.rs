//! Queues and lines by number: looked up or made once, then remembered, for neither is ever deleted.

use crate::store::{PostgresStore, sql};
use leasehold_store::{Error, ErrorKind, Result};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

/// What is known to be there.
#[derive(Debug, Default)]
pub(crate) struct Names {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    queues: HashMap<String, i32>,
    lines: HashSet<(i32, i16)>,
}

impl Names {
    fn queue(&self, name: &str) -> Option<i32> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.queues.get(name).copied()
    }

    /// The numbers of these lines' queues, or which names and lines are missing.
    fn lines<'a>(
        &self,
        asked: impl Iterator<Item = (&'a str, i16)>,
    ) -> std::result::Result<Vec<i32>, ()> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        asked
            .map(|(name, priority)| {
                let queue = *known.queues.get(name).ok_or(())?;
                let there = known.lines.contains(&(queue, priority));
                there.then_some(queue).ok_or(())
            })
            .collect()
    }

    fn add_queues(&self, found: impl Iterator<Item = (String, i32)>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.queues.extend(found);
    }

    fn add_lines(&self, made: impl Iterator<Item = (i32, i16)>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.lines.extend(made);
    }
}

/// The queue's number; none if there is no such queue.
pub(crate) async fn find(
    store: &PostgresStore,
    context: &'static str,
    name: &str,
) -> Result<Option<i32>> {
    if let Some(id) = store.jobs.names.queue(name) {
        return Ok(Some(id));
    }
    look_up(store, context, &[name]).await?;
    Ok(store.jobs.names.queue(name))
}

/// The queue's number; the queue is made if it is not there.
pub(crate) async fn ensure(
    store: &PostgresStore,
    context: &'static str,
    name: &str,
) -> Result<i32> {
    if let Some(id) = store.jobs.names.queue(name) {
        return Ok(id);
    }
    make(store, context, &[name]).await?;
    let missing = || Error::new(context, ErrorKind::Contended("a queue vanished".to_owned()));
    store.jobs.names.queue(name).ok_or_else(missing)
}

/// The numbers of the queues of these lines, in order; what is missing is made.
pub(crate) async fn ensure_lines<'a>(
    store: &PostgresStore,
    context: &'static str,
    asked: impl Iterator<Item = (&'a str, i16)> + Clone,
) -> Result<Vec<i32>> {
    if let Ok(ids) = store.jobs.names.lines(asked.clone()) {
        return Ok(ids);
    }
    let names: BTreeSet<&str> = asked.clone().map(|(name, _)| name).collect();
    let mut ids = HashMap::new();
    let unknown: Vec<&str> = names
        .iter()
        .copied()
        .filter(|name| store.jobs.names.queue(name).is_none())
        .collect();
    if !unknown.is_empty() {
        make(store, context, &unknown).await?;
    }
    for name in names {
        ids.insert(name, ensure(store, context, name).await?);
    }
    let queues: Vec<i32> = asked.clone().map(|(name, _)| ids[name]).collect();
    let lines: BTreeSet<(i32, i16)> = queues
        .iter()
        .copied()
        .zip(asked.map(|(_, priority)| priority))
        .collect();
    let (in_queues, priorities): (Vec<i32>, Vec<i16>) = lines.iter().copied().unzip();
    store
        .execute(context, sql!("queue/line"), &[&in_queues, &priorities])
        .await?;
    store.jobs.names.add_lines(lines.into_iter());
    Ok(queues)
}

async fn make(store: &PostgresStore, context: &'static str, names: &[&str]) -> Result<()> {
    store
        .execute(context, sql!("queue/ensure"), &[&names, &store.given_now()])
        .await?;
    look_up(store, context, names).await
}

async fn look_up(store: &PostgresStore, context: &'static str, names: &[&str]) -> Result<()> {
    let rows = store.many(context, sql!("queue/ids"), &[&names]).await?;
    store
        .jobs
        .names
        .add_queues(rows.iter().map(|row| (row.get("name"), row.get("id"))));
    Ok(())
}
