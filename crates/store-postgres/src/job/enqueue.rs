//! Enqueues jobs: a single job by a plain insert, many by arrays or COPY, jobs with deduplication keys in a transaction that takes the
//! keys first.

use super::row::JsonIn;
use super::{copy, queue_cache};
use crate::pool::{self, Connection};
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
/// How often to retry when the holder of a key releases it between two statements, or a cached line is wrong.
const MAX_TRIES: usize = 10;

/// The line that says that a queue has groups. No job has this priority.
pub(crate) const GROUPS_LINE: i16 = 32_767;

/// Returns the priority of the line that must exist for a job.
fn line_of(job: &NewJob) -> i16 {
    match job.group {
        Some(_) => GROUPS_LINE,
        None => job.priority,
    }
}

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
    let mut client = pool::take(&store.pool, CONTEXT).await?;
    for _ in 0..MAX_TRIES {
        let lines = jobs.iter().map(|job| (job.queue.as_str(), line_of(job)));
        let queues = queue_cache::ensure_lines(store, &client, lines).await?;
        let routed = queues.into_iter().zip(jobs);
        let routed: Vec<RoutedJob<'_>> = routed
            .map(|(queue, job)| RoutedJob { queue, job })
            .collect();
        match insert_all(store, &mut client, &routed).await? {
            Inserted::All(answers) => {
                let ids = answers.iter().filter(|answer| !answer.existing);
                if let Some(last) = ids.map(|answer| answer.id.0).max() {
                    store.epochs.saw_job(client.epoch, last);
                    store.job_notifier.wake();
                }
                return Ok(answers);
            }
            Inserted::KeyReleased => {}
            Inserted::WrongLine => {
                let cache = queue_cache::of(store, &client);
                jobs.iter().for_each(|job| cache.forget(&job.queue));
            }
        }
    }
    let text =
        "deduplication keys were released, or queues changed, repeatedly by concurrent calls";
    Err(Error::new(CONTEXT, ErrorKind::Contended(text.to_owned())))
}

/// The outcome of an attempt to insert the jobs of a call.
enum Inserted {
    All(Vec<EnqueuedJob>),
    /// The holder of a key released it between two statements; nothing was inserted.
    KeyReleased,
    /// A queue has another id than is cached, or a line does not exist; nothing was inserted.
    WrongLine,
}

impl Inserted {
    fn fresh(ids: Option<Vec<JobId>>) -> Self {
        match ids {
            Some(ids) => Self::All(ids.into_iter().map(new).collect()),
            None => Self::WrongLine,
        }
    }
}

async fn insert_all(
    store: &PostgresStore,
    client: &mut Connection,
    routed: &[RoutedJob<'_>],
) -> Result<Inserted> {
    match routed {
        [one]
            if one.job.dedup.is_none()
                && one.job.start == JobStart::Now
                && one.job.group.is_none() =>
        {
            let id = insert_single(store, client, *one).await?;
            Ok(Inserted::fresh(id.map(|id| vec![id])))
        }
        _ if routed.iter().all(|routed| routed.job.dedup.is_none()) => {
            Ok(Inserted::fresh(without_keys(store, client, routed).await?))
        }
        _ => with_keys(store, client, routed).await,
    }
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

async fn insert_single(
    store: &PostgresStore,
    client: &Connection,
    routed: RoutedJob<'_>,
) -> Result<Option<JobId>> {
    let job = routed.job;
    let row = client
        .session()
        .maybe(
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
                &job.queue,
                &client.job_xid_offset(),
            ],
        )
        .await?;
    Ok(row.map(|row| JobId(row.get("id"))))
}

async fn without_keys(
    store: &PostgresStore,
    client: &mut Connection,
    routed: &[RoutedJob<'_>],
) -> Result<Option<Vec<JobId>>> {
    let transaction = OpenTransaction::begin(client).await?;
    let Some(ids) = fresh_ids(&transaction, routed).await? else {
        return Ok(None);
    };
    insert(&transaction, store.given_now(), &ids, routed).await?;
    transaction.commit().await?;
    Ok(Some(ids))
}

/// Returns ids for the jobs; none if one of their lines does not exist. Lines are never deleted, so they exist until the transaction ends.
async fn fresh_ids(
    transaction: &OpenTransaction<'_>,
    routed: &[RoutedJob<'_>],
) -> Result<Option<Vec<JobId>>> {
    let count = i32::try_from(routed.len()).unwrap_or(i32::MAX);
    let line = |routed: &RoutedJob<'_>| (routed.queue, line_of(routed.job));
    let lines: HashMap<(i32, i16), &str> = routed
        .iter()
        .map(|routed| (line(routed), routed.job.queue.as_str()))
        .collect();
    let (queues, priorities): (Vec<i32>, Vec<i16>) = lines.keys().copied().unzip();
    let names: Vec<&str> = lines.values().copied().collect();
    let params: &Params<'_> = &[&count, &queues, &priorities, &names];
    let row = transaction.one(sql!("job/ids"), params).await?;
    let ids: Option<Vec<i64>> = row.get("ids");
    Ok(ids.map(|ids| ids.into_iter().map(JobId).collect()))
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
    // COPY uses the database's clock and transaction number, so it cannot be used with others.
    let no_groups = routed.iter().all(|p| p.job.group.is_none());
    let is_plain =
        no_groups && transaction.can_copy() && now.is_none() && transaction.job_xid_offset == 0;
    if is_plain && at_once && routed.len() >= COPY_MIN_JOBS {
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
                &transaction.job_xid_offset,
                &column(chunk, |p| p.job.group.clone()),
            ],
        )
        .await
        .map(drop)
}

async fn with_keys(
    store: &PostgresStore,
    client: &mut Connection,
    routed: &[RoutedJob<'_>],
) -> Result<Inserted> {
    let keys: HashSet<Key<'_>> = routed.iter().filter_map(RoutedJob::key).collect();
    let (queues, keys): (Vec<i32>, Vec<&str>) = keys.into_iter().unzip();
    let params: &Params<'_> = &[&store.given_now(), &queues, &keys];
    client
        .session()
        .execute(sql!("job/key_expire"), params)
        .await?;
    let transaction = OpenTransaction::begin(client).await?;
    let Some(ids) = fresh_ids(&transaction, routed).await? else {
        return Ok(Inserted::WrongLine);
    };
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
        return Ok(Inserted::KeyReleased);
    };
    transaction.commit().await?;
    Ok(Inserted::All(answers))
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
