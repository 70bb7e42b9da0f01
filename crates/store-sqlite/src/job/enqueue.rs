//! Enqueues jobs: all jobs of a call or none. One job at a time holds a deduplication key.

use crate::error::Fault;
use crate::job::NodeRef;
use crate::job::group;
use crate::job::line::{self, Run};
use crate::job::wait::{self, WaitingJob};
use crate::notification::NotifyTarget;
use crate::queue;
use crate::queue_access::NodeQueues;
use crate::row::{NodeIndex, Text, blob, later, micros};
use crate::session::Session;
use leasehold_core::JobId;
use leasehold_core::job::bounded_wait;
use leasehold_core::retry::Backoff;
use leasehold_store::job::{Dedup, EnqueuedJob, JobStart, NewJob};
use leasehold_store::{ErrorKind, sql};
use rusqlite::params;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::time::Duration;

const LAST: &str = sql!("job/last");
const ADVANCE: &str = sql!("job/advance");
const ENQUEUE: &str = sql!("job/enqueue");
pub(super) const KEY_FIND: &str = sql!("job/key_find");
const KEY_TAKE: &str = sql!("job/key_take");
const KEY_LOSE: &str = sql!("job/key_lose");

/// An enqueue call, prepared outside the writer thread. All payloads share one string and names are interned, so copying a
/// call does not allocate for each job.
pub(crate) struct EnqueueBatch {
    queues: Names,
    kinds: Names,
    groups: Names,
    payloads: String,
    jobs: Vec<PreparedJob>,
}

struct PreparedJob {
    queue: usize,
    kind: usize,
    group: Option<usize>,
    payload: Range<usize>,
    priority: i16,
    start: JobStart,
    max_attempts: Option<u32>,
    backoff: Option<Backoff>,
    timeout: Option<Duration>,
    extra: Option<Box<ExtraFields>>,
}

/// Fields that few jobs have.
#[derive(Default)]
struct ExtraFields {
    dedup: Option<Dedup>,
    trace_context: Option<String>,
    node: Option<NodeRef>,
}

impl EnqueueBatch {
    pub(crate) fn prepare(jobs: &[NewJob]) -> Self {
        let mut queues = Interner::default();
        let (mut kinds, mut groups) = (Interner::default(), Interner::default());
        let size = jobs.iter().map(|job| job.payload.as_str().len()).sum();
        let mut payloads = String::with_capacity(size);
        let jobs = jobs
            .iter()
            .map(|job| {
                let begin = payloads.len();
                payloads.push_str(job.payload.as_str());
                let extra = job.dedup.is_some() || job.trace_context.is_some();
                PreparedJob {
                    queue: queues.number(&job.queue),
                    kind: kinds.number(&job.kind),
                    group: job.group.as_deref().map(|group| groups.number(group)),
                    payload: begin..payloads.len(),
                    priority: job.priority,
                    start: job.start,
                    max_attempts: job.max_attempts,
                    backoff: job.backoff,
                    timeout: job.timeout,
                    extra: extra.then(|| {
                        Box::new(ExtraFields {
                            dedup: job.dedup.clone(),
                            trace_context: job.trace_context.clone(),
                            node: None,
                        })
                    }),
                }
            })
            .collect();
        Self {
            queues: queues.names,
            kinds: kinds.names,
            groups: groups.names,
            payloads,
            jobs,
        }
    }

    /// Prepares the jobs of graph nodes.
    pub(crate) fn for_nodes(jobs: &[NewJob], nodes: impl IntoIterator<Item = NodeRef>) -> Self {
        let mut batch = Self::prepare(jobs);
        for (job, node) in batch.jobs.iter_mut().zip(nodes) {
            job.extra.get_or_insert_default().node = Some(node);
        }
        batch
    }
}

type Names = Vec<String>;

/// Interns names. Optimized for repeats of the previous name.
#[derive(Default)]
struct Interner<'a> {
    names: Names,
    numbers: HashMap<&'a str, usize>,
    last: usize,
}

impl<'a> Interner<'a> {
    fn number(&mut self, name: &'a str) -> usize {
        if self.names.get(self.last).is_none_or(|last| last != name) {
            let names = &mut self.names;
            self.last = *self.numbers.entry(name).or_insert_with(|| {
                names.push(name.to_owned());
                names.len() - 1
            });
        }
        self.last
    }
}

pub(crate) fn enqueue(
    session: &Session<'_>,
    batch: &EnqueueBatch,
) -> Result<Vec<EnqueuedJob>, Fault> {
    let queues = batch
        .queues
        .iter()
        .map(|name| queue::get_or_create(session, name));
    let queues: Vec<i64> = queues
        .map(|queue| queue.map(|queue| queue.id))
        .collect::<Result<_, Fault>>()?;
    enqueue_into(session, batch, &queues)
}

/// Enqueues jobs of nodes, whose queues are known.
pub(crate) fn enqueue_nodes(
    session: &Session<'_>,
    batch: &EnqueueBatch,
    queues: &NodeQueues,
) -> Result<Vec<EnqueuedJob>, Fault> {
    let missing = |name: &String| ErrorKind::Broken(format!("queue `{name}` was not looked up"));
    let id = |name: &String| queues.get(name).copied().ok_or_else(|| missing(name));
    let queues: Vec<i64> = batch.queues.iter().map(id).collect::<Result<_, _>>()?;
    enqueue_into(session, batch, &queues)
}

/// Enqueues jobs in these queues, in the order of the batch's names.
fn enqueue_into(
    session: &Session<'_>,
    batch: &EnqueueBatch,
    queues: &[i64],
) -> Result<Vec<EnqueuedJob>, Fault> {
    let before: i64 = session.one(LAST, [], |row| Ok(row.get(0)?))?;
    let mut last = before;
    let mut answers = Vec::with_capacity(batch.jobs.len());
    let mut runs: Vec<Run> = Vec::new();
    let mut joining = JoiningGroups::default();
    session.with_statement(ENQUEUE, |statement| {
        for new in &batch.jobs {
            let queue = queues[new.queue];
            let dedup = new.extra.as_ref().and_then(|extra| extra.dedup.as_ref());
            if let Some(id) = key_holder(session, queue, dedup)? {
                answers.push(EnqueuedJob { id, existing: true });
                continue;
            }
            last += 1;
            let trace_context = new.extra.as_ref().and_then(|r| r.trace_context.as_deref());
            let node = new.extra.as_ref().and_then(|extra| extra.node);
            statement.execute(params![
                last,
                queue,
                new.priority,
                session.now,
                Text(&batch.kinds[new.kind]),
                Text(&batch.payloads[new.payload.clone()]),
                new.max_attempts,
                new.backoff.map(|backoff| micros(backoff.base)),
                new.backoff.map(|backoff| backoff.factor),
                new.backoff.map(|backoff| micros(backoff.max)),
                new.backoff.map(|backoff| backoff.jitter),
                new.timeout.map(micros),
                trace_context.map(Text),
                node.map(|node| blob(node.execution)),
                node.map(|node| NodeIndex(node.index)),
                new.group.map(|group| Text(&batch.groups[group]))
            ])?;
            take_key(session, queue, last, dedup)?;
            let is_due = match new.group {
                Some(group) => {
                    joining.queues.insert(queue);
                    insert_waiting(session, new, queue, last, &batch.groups[group])?
                }
                None => insert_queued(session, new, queue, last, &mut runs)?,
            };
            if let Some(group) = new.group.filter(|_| is_due) {
                joining.add(queue, group);
            }
            let (id, existing) = (JobId(last), false);
            answers.push(EnqueuedJob { id, existing });
        }
        Ok(())
    })?;
    for run in runs {
        line::append(session, run)?;
    }
    joining.write(session, &batch.groups)?;
    if last > before {
        session.run(ADVANCE, [last])?;
        session.notify(NotifyTarget::Workers);
    }
    Ok(answers)
}

/// The groups of the due jobs of a call, in the order of their first jobs.
#[derive(Default)]
struct JoiningGroups {
    queues: BTreeSet<i64>,
    groups: Vec<(i64, usize)>,
    seen: HashSet<(i64, usize)>,
}

impl JoiningGroups {
    fn add(&mut self, queue: i64, group: usize) {
        if self.seen.insert((queue, group)) {
            self.groups.push((queue, group));
        }
    }

    fn write(self, session: &Session<'_>, names: &Names) -> Result<(), Fault> {
        for queue in self.queues {
            group::begin(session, queue)?;
        }
        for (queue, name) in self.groups {
            group::join(session, queue, &names[name])?;
        }
        Ok(())
    }
}

/// When a new job may run.
fn run_at(session: &Session<'_>, start: JobStart) -> i64 {
    match start {
        JobStart::Now => session.now,
        JobStart::At(at) => at.as_microsecond(),
        JobStart::In(after) => later(session.now, bounded_wait(after)),
    }
}

/// Adds a new job to the waiting jobs. Returns whether it is due.
fn insert_waiting(
    session: &Session<'_>,
    new: &PreparedJob,
    queue: i64,
    job: i64,
    group: &str,
) -> Result<bool, Fault> {
    let run_at = run_at(session, new.start).max(session.now);
    let waiting = WaitingJob {
        job,
        queue,
        priority: new.priority,
        created_at: session.now,
        run_at,
        attempts: 0,
        token: 0,
        group,
    };
    wait::add(session, &waiting)?;
    Ok(run_at <= session.now)
}

/// Adds a new job without a group to its line, or to the waiting jobs if it is scheduled. Returns whether it is due.
fn insert_queued(
    session: &Session<'_>,
    new: &PreparedJob,
    queue: i64,
    job: i64,
    runs: &mut Vec<Run>,
) -> Result<bool, Fault> {
    if run_at(session, new.start) > session.now {
        return insert_waiting(session, new, queue, job, group::NONE);
    }
    let run = Run::single(queue, new.priority, job);
    if !runs.last_mut().is_some_and(|last| last.try_extend(&run)) {
        runs.push(run);
    }
    Ok(true)
}

/// Returns the job that holds the key. Releases the key first if its window has passed.
fn key_holder(
    session: &Session<'_>,
    queue: i64,
    dedup: Option<&Dedup>,
) -> Result<Option<JobId>, Fault> {
    let Some(dedup) = dedup else {
        return Ok(None);
    };
    let found = session.optional(KEY_FIND, params![queue, Text(&dedup.key)], |row| {
        Ok((row.get(0)?, row.get::<_, Option<i64>>(1)?))
    })?;
    match found {
        Some((job, Some(until))) if until <= session.now => {
            session.run(KEY_LOSE, [job])?;
            Ok(None)
        }
        Some((job, _)) => Ok(Some(JobId(job))),
        None => Ok(None),
    }
}

fn take_key(
    session: &Session<'_>,
    queue: i64,
    job: i64,
    dedup: Option<&Dedup>,
) -> Result<(), Fault> {
    let Some(dedup) = dedup else {
        return Ok(());
    };
    let until = dedup.window.map(|window| later(session.now, window));
    let row = params![job, queue, Text(&dedup.key), until];
    session.run(KEY_TAKE, row).map(|_| ())
}
