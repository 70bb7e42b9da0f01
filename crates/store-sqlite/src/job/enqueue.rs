//! Enqueue: all of a call's jobs or none, each key held by one job at a time.

use crate::error::Fault;
use crate::job::NodeOf;
use crate::job::line::{self, Run};
use crate::job::wait::{self, Waiting};
use crate::queue;
use crate::row::{Place, Text, blob, later, length};
use crate::session::Session;
use crate::wake::Ring;
use leasehold_core::JobId;
use leasehold_core::job::bounded_wait;
use leasehold_core::retry::Backoff;
use leasehold_store::job::{Dedup, EnqueuedJob, JobStart, NewJob};
use leasehold_store::sql;
use rusqlite::params;
use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

const LAST: &str = sql!("job/last");
const ADVANCE: &str = sql!("job/advance");
const ENQUEUE: &str = sql!("job/enqueue");
const KEY_FIND: &str = sql!("job/key_find");
const KEY_TAKE: &str = sql!("job/key_take");
const KEY_LOSE: &str = sql!("job/key_lose");

/// An enqueue call made ready outside the writer. Its texts are one text and its names are kept once each: a call of many jobs
/// is copied without allocating for each of them.
pub(crate) struct Call {
    queues: Names,
    kinds: Names,
    payloads: String,
    jobs: Vec<New>,
}

struct New {
    queue: usize,
    kind: usize,
    payload: Range<usize>,
    priority: i16,
    start: JobStart,
    max_attempts: Option<u32>,
    backoff: Option<Backoff>,
    timeout: Option<Duration>,
    rare: Option<Box<Rare>>,
}

/// What few jobs have.
#[derive(Default)]
struct Rare {
    dedup: Option<Dedup>,
    trace_context: Option<String>,
    node: Option<NodeOf>,
}

impl Call {
    pub(crate) fn prepare(jobs: &[NewJob]) -> Self {
        let (mut queues, mut kinds) = (Namer::default(), Namer::default());
        let size = jobs.iter().map(|job| job.payload.as_str().len()).sum();
        let mut payloads = String::with_capacity(size);
        let jobs = jobs
            .iter()
            .map(|job| {
                let begin = payloads.len();
                payloads.push_str(job.payload.as_str());
                let rare = job.dedup.is_some() || job.trace_context.is_some();
                New {
                    queue: queues.number(&job.queue),
                    kind: kinds.number(&job.kind),
                    payload: begin..payloads.len(),
                    priority: job.priority,
                    start: job.start,
                    max_attempts: job.max_attempts,
                    backoff: job.backoff,
                    timeout: job.timeout,
                    rare: rare.then(|| {
                        Box::new(Rare {
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
            payloads,
            jobs,
        }
    }

    /// The same for nodes of graphs.
    pub(crate) fn of_nodes(jobs: &[NewJob], nodes: impl IntoIterator<Item = NodeOf>) -> Self {
        let mut call = Self::prepare(jobs);
        for (job, node) in call.jobs.iter_mut().zip(nodes) {
            job.rare.get_or_insert_default().node = Some(node);
        }
        call
    }
}

type Names = Vec<String>;

/// Gives each name a number; the same as the last time is the usual case.
#[derive(Default)]
struct Namer<'a> {
    names: Names,
    numbers: HashMap<&'a str, usize>,
    last: usize,
}

impl<'a> Namer<'a> {
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

pub(crate) fn enqueue(session: &Session<'_>, call: &Call) -> Result<Vec<EnqueuedJob>, Fault> {
    let queues = call.queues.iter().map(|name| queue::make(session, name));
    let queues: Vec<i64> = queues
        .map(|known| known.map(|known| known.id))
        .collect::<Result<_, Fault>>()?;
    let before: i64 = session.one(LAST, [], |row| Ok(row.get(0)?))?;
    let mut last = before;
    let mut answers = Vec::with_capacity(call.jobs.len());
    let mut runs: Vec<Run> = Vec::new();
    session.often(ENQUEUE, |statement| {
        for new in &call.jobs {
            let queue = queues[new.queue];
            let dedup = new.rare.as_ref().and_then(|rare| rare.dedup.as_ref());
            if let Some(id) = holder(session, queue, dedup)? {
                answers.push(EnqueuedJob { id, existing: true });
                continue;
            }
            last += 1;
            let trace_context = new.rare.as_ref().and_then(|r| r.trace_context.as_deref());
            let node = new.rare.as_ref().and_then(|rare| rare.node);
            statement.execute(params![
                last,
                queue,
                new.priority,
                session.now,
                Text(&call.kinds[new.kind]),
                Text(&call.payloads[new.payload.clone()]),
                new.max_attempts,
                new.backoff.map(|backoff| length(backoff.base)),
                new.backoff.map(|backoff| backoff.factor),
                new.backoff.map(|backoff| length(backoff.max)),
                new.backoff.map(|backoff| backoff.jitter),
                new.timeout.map(length),
                trace_context.map(Text),
                node.map(|node| blob(node.execution)),
                node.map(|node| Place(node.place))
            ])?;
            hold(session, queue, last, dedup)?;
            place(session, new, queue, last, &mut runs)?;
            let (id, existing) = (JobId(last), false);
            answers.push(EnqueuedJob { id, existing });
        }
        Ok(())
    })?;
    for run in runs {
        line::append(session, run)?;
    }
    if last > before {
        session.run(ADVANCE, [last])?;
        session.ring(Ring::Workers);
    }
    Ok(answers)
}

/// Puts a new job into its line, or has it wait for its time.
fn place(
    session: &Session<'_>,
    new: &New,
    queue: i64,
    job: i64,
    runs: &mut Vec<Run>,
) -> Result<(), Fault> {
    let run_at = match new.start {
        JobStart::Now => session.now,
        JobStart::At(at) => at.as_microsecond(),
        JobStart::In(after) => later(session.now, bounded_wait(after)),
    };
    if run_at > session.now {
        let waiting = Waiting {
            job,
            queue,
            priority: new.priority,
            created_at: session.now,
            run_at,
            attempts: 0,
            token: 0,
        };
        return wait::add(session, &waiting);
    }
    let run = Run::of(queue, new.priority, job);
    if !runs.last_mut().is_some_and(|last| last.grow(&run)) {
        runs.push(run);
    }
    Ok(())
}

/// Who holds the key. A holder whose window has passed loses it here.
fn holder(
    session: &Session<'_>,
    queue: i64,
    dedup: Option<&Dedup>,
) -> Result<Option<JobId>, Fault> {
    let Some(dedup) = dedup else {
        return Ok(None);
    };
    let found = session.maybe(KEY_FIND, params![queue, Text(&dedup.key)], |row| {
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

fn hold(session: &Session<'_>, queue: i64, job: i64, dedup: Option<&Dedup>) -> Result<(), Fault> {
    let Some(dedup) = dedup else {
        return Ok(());
    };
    let until = dedup.window.map(|window| later(session.now, window));
    let row = params![job, queue, Text(&dedup.key), until];
    session.run(KEY_TAKE, row).map(|_| ())
}
