//! Putting jobs into queues: one by a plain insert, many by arrays or COPY, those with keys in a transaction that takes the keys first.

use super::row::JsonIn;
use super::{copy, names};
use crate::error::postgres;
use crate::pool;
use crate::row::micros;
use crate::store::{PostgresStore, sql};
use deadpool_postgres::Transaction;
use futures::SinkExt;
use leasehold_core::job::bounded_wait;
use leasehold_core::limits::TRACE_CONTEXT_MAX_CHARS;
use leasehold_core::text::clip;
use leasehold_core::{JobId, Timestamp};
use leasehold_store::job::{EnqueuedJob, JobStart, NewJob};
use leasehold_store::{Error, ErrorKind, Result};
use std::collections::{HashMap, HashSet};

const CONTEXT: &str = "job_enqueue";
/// From so many jobs on COPY is worth its extra round trips.
const COPY_FROM: usize = 100;
/// Jobs in one insert of arrays.
const CHUNK: usize = 1_000;
/// How often to look again for the holder of a key that was given up between two statements.
const TRIES: usize = 10;

/// A key as the database knows it.
type Key<'a> = (i32, &'a str);

/// A job with its queue's number.
#[derive(Clone, Copy)]
struct Placed<'a> {
    queue: i32,
    job: &'a NewJob,
}

impl<'a> Placed<'a> {
    fn key(&self) -> Option<Key<'a>> {
        let dedup = self.job.dedup.as_ref()?;
        Some((self.queue, dedup.key.as_str()))
    }
}

pub(crate) async fn enqueue(store: &PostgresStore, jobs: &[NewJob]) -> Result<Vec<EnqueuedJob>> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let lines = jobs.iter().map(|job| (job.queue.as_str(), job.priority));
    let queues = names::ensure_lines(store, CONTEXT, lines).await?;
    let placed: Vec<Placed<'_>> = queues
        .into_iter()
        .zip(jobs)
        .map(|(queue, job)| Placed { queue, job })
        .collect();
    let answers = match placed.as_slice() {
        [one] if one.job.dedup.is_none() && one.job.start == JobStart::Now => {
            vec![new(one_by_itself(store, *one).await?)]
        }
        _ if placed.iter().all(|placed| placed.job.dedup.is_none()) => {
            let ids = without_keys(store, &placed).await?;
            ids.into_iter().map(new).collect()
        }
        _ => with_keys(store, &placed).await?,
    };
    if answers.iter().any(|answer| !answer.existing) {
        store.job_wakes.ring();
    }
    Ok(answers)
}

fn new(id: JobId) -> EnqueuedJob {
    EnqueuedJob {
        id,
        existing: false,
    }
}

pub(super) fn trace(job: &NewJob) -> Option<String> {
    job.trace_context
        .as_deref()
        .map(|trace| clip(trace, TRACE_CONTEXT_MAX_CHARS))
}

pub(super) fn attempts(job: &NewJob) -> Option<i32> {
    job.max_attempts
        .map(|max| i32::try_from(max).unwrap_or(i32::MAX))
}

async fn one_by_itself(store: &PostgresStore, placed: Placed<'_>) -> Result<JobId> {
    let job = placed.job;
    let row = store
        .one(
            CONTEXT,
            sql!("job/enqueue_one"),
            &[
                &store.given_now(),
                &placed.queue,
                &job.priority,
                &job.kind,
                &JsonIn(&job.payload),
                &attempts(job),
                &job.timeout.map(micros),
                &job.backoff.map(|b| micros(b.base)),
                &job.backoff.map(|b| micros(b.max)),
                &job.backoff.map(|b| b.factor),
                &job.backoff.map(|b| b.jitter),
                &trace(job),
            ],
        )
        .await?;
    Ok(JobId(row.get("id")))
}

async fn without_keys(store: &PostgresStore, placed: &[Placed<'_>]) -> Result<Vec<JobId>> {
    let mut client = pool::take(&store.pool, CONTEXT).await?;
    let transaction = client.transaction().await.map_err(postgres(CONTEXT))?;
    let ids = fresh_ids(&transaction, placed.len()).await?;
    insert(&transaction, store.given_now(), &ids, placed).await?;
    transaction.commit().await.map_err(postgres(CONTEXT))?;
    Ok(ids)
}

async fn fresh_ids(transaction: &Transaction<'_>, count: usize) -> Result<Vec<JobId>> {
    let count = i32::try_from(count).unwrap_or(i32::MAX);
    let statement = transaction
        .prepare_cached(sql!("job/ids"))
        .await
        .map_err(postgres(CONTEXT))?;
    let row = transaction
        .query_one(&statement, &[&count])
        .await
        .map_err(postgres(CONTEXT))?;
    let ids: Vec<i64> = row.get("ids");
    Ok(ids.into_iter().map(JobId).collect())
}

/// Inserts jobs under these ids and has sleepers woken.
async fn insert(
    transaction: &Transaction<'_>,
    now: Option<Timestamp>,
    ids: &[JobId],
    placed: &[Placed<'_>],
) -> Result<()> {
    let at_once = placed.iter().all(|p| p.job.start == JobStart::Now);
    let numbered = ids.iter().copied().zip(placed.iter().copied());
    // COPY lets the database's clock say when: not for a test that turns its own.
    if now.is_none() && at_once && placed.len() >= COPY_FROM {
        copy_in(transaction, numbered).await?;
    } else {
        let all: Vec<(JobId, Placed<'_>)> = numbered.collect();
        for chunk in all.chunks(CHUNK) {
            insert_chunk(transaction, now, chunk).await?;
        }
    }
    let wake = transaction
        .prepare_cached(sql!("job/wake"))
        .await
        .map_err(postgres(CONTEXT))?;
    transaction
        .query_one(&wake, &[])
        .await
        .map_err(postgres(CONTEXT))?;
    Ok(())
}

async fn copy_in<'a>(
    transaction: &Transaction<'_>,
    numbered: impl Iterator<Item = (JobId, Placed<'a>)>,
) -> Result<()> {
    let document = copy::encode(numbered.map(|(id, placed)| (id, placed.queue, placed.job)));
    let statement = transaction
        .prepare_cached(sql!("job/copy"))
        .await
        .map_err(postgres(CONTEXT))?;
    let sink = transaction
        .copy_in::<_, bytes::Bytes>(&statement)
        .await
        .map_err(postgres(CONTEXT))?;
    futures::pin_mut!(sink);
    sink.send(document.into())
        .await
        .map_err(postgres(CONTEXT))?;
    sink.finish().await.map_err(postgres(CONTEXT))?;
    Ok(())
}

async fn insert_chunk(
    transaction: &Transaction<'_>,
    now: Option<Timestamp>,
    chunk: &[(JobId, Placed<'_>)],
) -> Result<()> {
    fn column<'a, T>(chunk: &[(JobId, Placed<'a>)], of: impl Fn(&Placed<'a>) -> T) -> Vec<T> {
        chunk.iter().map(|(_, placed)| of(placed)).collect()
    }
    let ids: Vec<i64> = chunk.iter().map(|(id, _)| id.0).collect();
    let statement = transaction
        .prepare_cached(sql!("job/enqueue"))
        .await
        .map_err(postgres(CONTEXT))?;
    transaction
        .execute(
            &statement,
            &[
                &now,
                &ids,
                &column(chunk, |p| p.queue),
                &column(chunk, |p| p.job.priority),
                &column(chunk, |p| p.job.kind.as_str()),
                &column(chunk, |p| JsonIn(&p.job.payload)),
                &column(chunk, |p| match p.job.start {
                    JobStart::At(at) => Some(at),
                    JobStart::Now | JobStart::In(_) => None,
                }),
                &column(chunk, |p| match p.job.start {
                    JobStart::In(wait) => Some(micros(bounded_wait(wait))),
                    JobStart::Now | JobStart::At(_) => None,
                }),
                &column(chunk, |p| attempts(p.job)),
                &column(chunk, |p| p.job.timeout.map(micros)),
                &column(chunk, |p| p.job.backoff.map(|b| micros(b.base))),
                &column(chunk, |p| p.job.backoff.map(|b| micros(b.max))),
                &column(chunk, |p| p.job.backoff.map(|b| b.factor)),
                &column(chunk, |p| p.job.backoff.map(|b| b.jitter)),
                &column(chunk, |p| trace(p.job)),
            ],
        )
        .await
        .map_err(postgres(CONTEXT))?;
    Ok(())
}

async fn with_keys(store: &PostgresStore, placed: &[Placed<'_>]) -> Result<Vec<EnqueuedJob>> {
    let keys: HashSet<Key<'_>> = placed.iter().filter_map(Placed::key).collect();
    let (queues, keys): (Vec<i32>, Vec<&str>) = keys.into_iter().unzip();
    for _ in 0..TRIES {
        store
            .execute(
                CONTEXT,
                sql!("job/key_forget"),
                &[&store.given_now(), &queues, &keys],
            )
            .await?;
        if let Some(answers) = try_with_keys(store, placed).await? {
            return Ok(answers);
        }
    }
    let text = "deduplication keys were given up again and again while they were asked for";
    Err(Error::new(CONTEXT, ErrorKind::Contended(text.to_owned())))
}

/// None if the holder of a key gave it up between two statements.
async fn try_with_keys(
    store: &PostgresStore,
    placed: &[Placed<'_>],
) -> Result<Option<Vec<EnqueuedJob>>> {
    let mut client = pool::take(&store.pool, CONTEXT).await?;
    let transaction = client.transaction().await.map_err(postgres(CONTEXT))?;
    let ids = fresh_ids(&transaction, placed.len()).await?;
    let taken = take_keys(&transaction, store.given_now(), &ids, placed).await?;
    let (mut new_ids, mut new_jobs) = (Vec::new(), Vec::new());
    let mut others: Vec<Key<'_>> = Vec::new();
    for (id, job) in ids.iter().zip(placed) {
        match job.key() {
            Some(key) if !taken.contains(id) => others.push(key),
            Some(_) | None => {
                new_ids.push(*id);
                new_jobs.push(*job);
            }
        }
    }
    let holders = holders(&transaction, store.given_now(), &others).await?;
    if !new_jobs.is_empty() {
        insert(&transaction, store.given_now(), &new_ids, &new_jobs).await?;
    }
    let answers = ids.iter().zip(placed).map(|(id, job)| match job.key() {
        Some(key) if !taken.contains(id) => {
            let holder = holders.get(&(key.0, key.1.to_owned()))?;
            Some(EnqueuedJob {
                id: *holder,
                existing: true,
            })
        }
        Some(_) | None => Some(new(*id)),
    });
    let Some(answers) = answers.collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    transaction.commit().await.map_err(postgres(CONTEXT))?;
    Ok(Some(answers))
}

/// Takes the keys that nobody holds, for the first job of the call that has each; which jobs got theirs.
async fn take_keys(
    transaction: &Transaction<'_>,
    now: Option<Timestamp>,
    ids: &[JobId],
    placed: &[Placed<'_>],
) -> Result<HashSet<JobId>> {
    let mut first: HashMap<Key<'_>, (JobId, Option<i64>)> = HashMap::new();
    for (id, job) in ids.iter().zip(placed) {
        if let (Some(key), Some(dedup)) = (job.key(), job.job.dedup.as_ref()) {
            first.entry(key).or_insert((*id, dedup.window.map(micros)));
        }
    }
    let (queues, keys): (Vec<i32>, Vec<&str>) = first.keys().copied().unzip();
    let (takers, windows): (Vec<i64>, Vec<Option<i64>>) =
        first.values().map(|(id, window)| (id.0, *window)).unzip();
    let take = transaction
        .prepare_cached(sql!("job/key_take"))
        .await
        .map_err(postgres(CONTEXT))?;
    let rows = transaction
        .query(&take, &[&now, &queues, &keys, &takers, &windows])
        .await
        .map_err(postgres(CONTEXT))?;
    Ok(rows.iter().map(|row| JobId(row.get("job_id"))).collect())
}

async fn holders(
    transaction: &Transaction<'_>,
    now: Option<Timestamp>,
    others: &[Key<'_>],
) -> Result<HashMap<(i32, String), JobId>> {
    if others.is_empty() {
        return Ok(HashMap::new());
    }
    let (queues, keys): (Vec<i32>, Vec<&str>) = others.iter().copied().unzip();
    let statement = transaction
        .prepare_cached(sql!("job/key_holders"))
        .await
        .map_err(postgres(CONTEXT))?;
    let rows = transaction
        .query(&statement, &[&now, &queues, &keys])
        .await
        .map_err(postgres(CONTEXT))?;
    Ok(rows
        .iter()
        .map(|row| {
            let key = (row.get("queue_id"), row.get("key"));
            (key, JobId(row.get("job_id")))
        })
        .collect())
}
