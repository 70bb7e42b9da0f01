//! Enqueues jobs: a single job by a plain insert, many by arrays or COPY, jobs with deduplication keys in a transaction that takes the
//! keys first.

use super::row::JsonIn;
use super::{copy, queue_cache};
use crate::pool;
use crate::row::micros;
use crate::store::{Params, PostgresStore, sql};
use crate::transaction::OpenTransaction;
use leasehold_core::job::bounded_wait;
use leasehold_core::limits::TRACE_CONTEXT_MAX_CHARS;
use leasehold_core::text::clip;
use leasehold_core::{JobId, Timestamp};
use leasehold_store::job::{EnqueuedJob, JobStart, NewJob};
use leasehold_store::{Error, ErrorKind, Result};
use std::collections::{HashMap, HashSet};

const CONTEXT: &str = "job_enqueue";
/// Minimum number of jobs for which COPY outweighs its extra round trips.
const COPY_MIN_JOBS: usize = 100;
/// Jobs in one array insert.
const CHUNK: usize = 1_000;
/// How often to retry when the holder of a key releases it between two statements.
const MAX_TRIES: usize = 10;

/// A deduplication key with its queue's id.
type Key<'a> = (i32, &'a str);

/// A job with its queue's id.
#[derive(Clone, Copy)]
struct RoutedJob<'a> {
    queue: i32,
    job: &'a NewJob,
}

impl<'a> RoutedJob<'a> {
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
    let queues = queue_cache::ensure_lines(store, CONTEXT, lines).await?;
    let routed: Vec<RoutedJob<'_>> = queues
        .into_iter()
        .zip(jobs)
        .map(|(queue, job)| RoutedJob { queue, job })
        .collect();
    let answers = match routed.as_slice() {
        [one] if one.job.dedup.is_none() && one.job.start == JobStart::Now => {
            vec![new(insert_single(store, *one).await?)]
        }
        _ if routed.iter().all(|routed| routed.job.dedup.is_none()) => {
            let ids = without_keys(store, &routed).await?;
            ids.into_iter().map(new).collect()
        }
        _ => with_keys(store, &routed).await?,
    };
    if answers.iter().any(|answer| !answer.existing) {
        store.job_notifier.wake();
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

async fn insert_single(store: &PostgresStore, routed: RoutedJob<'_>) -> Result<JobId> {
    let job = routed.job;
    let row = store
        .one(
            CONTEXT,
            sql!("job/enqueue_one"),
            &[
                &store.given_now(),
                &routed.queue,
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

async fn without_keys(store: &PostgresStore, routed: &[RoutedJob<'_>]) -> Result<Vec<JobId>> {
    let mut client = pool::take(&store.pool, CONTEXT).await?;
    let transaction = OpenTransaction::begin(&mut client).await?;
    let ids = fresh_ids(&transaction, routed.len()).await?;
    insert(&transaction, store.given_now(), &ids, routed).await?;
    transaction.commit().await?;
    Ok(ids)
}

async fn fresh_ids(transaction: &OpenTransaction<'_>, count: usize) -> Result<Vec<JobId>> {
    let count = i32::try_from(count).unwrap_or(i32::MAX);
    let row = transaction.one(sql!("job/ids"), &[&count]).await?;
    let ids: Vec<i64> = row.get("ids");
    Ok(ids.into_iter().map(JobId).collect())
}

/// Inserts jobs under these ids and notifies waiting workers.
async fn insert(
    transaction: &OpenTransaction<'_>,
    now: Option<Timestamp>,
    ids: &[JobId],
    routed: &[RoutedJob<'_>],
) -> Result<()> {
    let at_once = routed.iter().all(|p| p.job.start == JobStart::Now);
    let numbered = ids.iter().copied().zip(routed.iter().copied());
    // COPY uses the database's clock, so it cannot be used with a manual clock.
    if transaction.can_copy() && now.is_none() && at_once && routed.len() >= COPY_MIN_JOBS {
        let rows = numbered.map(|(id, routed)| (id, routed.queue, routed.job));
        let document = copy::encode(rows);
        transaction
            .copy_in(sql!("job/copy"), document.into())
            .await?;
    } else {
        let all: Vec<(JobId, RoutedJob<'_>)> = numbered.collect();
        for chunk in all.chunks(CHUNK) {
            insert_chunk(transaction, now, chunk).await?;
        }
    }
    transaction.one(sql!("job/notify"), &[]).await.map(drop)
}

async fn insert_chunk(
    transaction: &OpenTransaction<'_>,
    now: Option<Timestamp>,
    chunk: &[(JobId, RoutedJob<'_>)],
) -> Result<()> {
    fn column<'a, T>(chunk: &[(JobId, RoutedJob<'a>)], of: impl Fn(&RoutedJob<'a>) -> T) -> Vec<T> {
        chunk.iter().map(|(_, routed)| of(routed)).collect()
    }
    let ids: Vec<i64> = chunk.iter().map(|(id, _)| id.0).collect();
    transaction
        .execute(
            sql!("job/enqueue"),
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
        .map(drop)
}

async fn with_keys(store: &PostgresStore, routed: &[RoutedJob<'_>]) -> Result<Vec<EnqueuedJob>> {
    let keys: HashSet<Key<'_>> = routed.iter().filter_map(RoutedJob::key).collect();
    let (queues, keys): (Vec<i32>, Vec<&str>) = keys.into_iter().unzip();
    for _ in 0..MAX_TRIES {
        store
            .execute(
                CONTEXT,
                sql!("job/key_expire"),
                &[&store.given_now(), &queues, &keys],
            )
            .await?;
        if let Some(answers) = try_with_keys(store, routed).await? {
            return Ok(answers);
        }
    }
    let text = "deduplication keys were released repeatedly by concurrent calls";
    Err(Error::new(CONTEXT, ErrorKind::Contended(text.to_owned())))
}

/// Returns none if the holder of a key released it between two statements.
async fn try_with_keys(
    store: &PostgresStore,
    routed: &[RoutedJob<'_>],
) -> Result<Option<Vec<EnqueuedJob>>> {
    let mut client = pool::take(&store.pool, CONTEXT).await?;
    let transaction = OpenTransaction::begin(&mut client).await?;
    let ids = fresh_ids(&transaction, routed.len()).await?;
    let taken = take_keys(&transaction, store.given_now(), &ids, routed).await?;
    let (mut new_ids, mut new_jobs) = (Vec::new(), Vec::new());
    let mut held_keys: Vec<Key<'_>> = Vec::new();
    for (id, job) in ids.iter().zip(routed) {
        match job.key() {
            Some(key) if !taken.contains(id) => held_keys.push(key),
            Some(_) | None => {
                new_ids.push(*id);
                new_jobs.push(*job);
            }
        }
    }
    let holders = holders(&transaction, store.given_now(), &held_keys).await?;
    if !new_jobs.is_empty() {
        insert(&transaction, store.given_now(), &new_ids, &new_jobs).await?;
    }
    let answers = ids.iter().zip(routed).map(|(id, job)| match job.key() {
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
    transaction.commit().await?;
    Ok(Some(answers))
}

/// Takes free keys, each for the first job of the call that has it. Returns which jobs got their key.
async fn take_keys(
    transaction: &OpenTransaction<'_>,
    now: Option<Timestamp>,
    ids: &[JobId],
    routed: &[RoutedJob<'_>],
) -> Result<HashSet<JobId>> {
    let mut first: HashMap<Key<'_>, (JobId, Option<i64>)> = HashMap::new();
    for (id, job) in ids.iter().zip(routed) {
        if let (Some(key), Some(dedup)) = (job.key(), job.job.dedup.as_ref()) {
            first.entry(key).or_insert((*id, dedup.window.map(micros)));
        }
    }
    let (queues, keys): (Vec<i32>, Vec<&str>) = first.keys().copied().unzip();
    let (takers, windows): (Vec<i64>, Vec<Option<i64>>) =
        first.values().map(|(id, window)| (id.0, *window)).unzip();
    let params: &Params<'_> = &[&now, &queues, &keys, &takers, &windows];
    let rows = transaction.many(sql!("job/key_take"), params).await?;
    Ok(rows.iter().map(|row| JobId(row.get("job_id"))).collect())
}

async fn holders(
    transaction: &OpenTransaction<'_>,
    now: Option<Timestamp>,
    others: &[Key<'_>],
) -> Result<HashMap<(i32, String), JobId>> {
    if others.is_empty() {
        return Ok(HashMap::new());
    }
    let (queues, keys): (Vec<i32>, Vec<&str>) = others.iter().copied().unzip();
    let params: &Params<'_> = &[&now, &queues, &keys];
    let rows = transaction.many(sql!("job/key_holders"), params).await?;
    Ok(rows
        .iter()
        .map(|row| {
            let key = (row.get("queue_id"), row.get("key"));
            (key, JobId(row.get("job_id")))
        })
        .collect())
}
