//! The claim: as many jobs of a queue as asked and as limits allow, waiting and fresh ones in one line, each page of them under a token.

use crate::error::Fault;
use crate::job::line::{self, Run};
use crate::job::page::{Entry, MOST};
use crate::job::wish::{self, Wishes};
use crate::job::{expire, lease, wait};
use crate::queue::{self, Known};
use crate::row::{later, moment};
use crate::session::Session;
use leasehold_core::job::{ClaimedJob, JobClaim, JobsClaimed};
use leasehold_core::lease::bounded;
use leasehold_core::limits::JOB_MAX_BATCH;
use leasehold_core::{JobId, JsonText};
use leasehold_store::sql;
use rusqlite::{Row, params};
use std::time::Duration;

const WAITING: &str = sql!("job/claim_waiting");
const FRESH: &str = sql!("job/claim_fresh");

pub(crate) fn claim(session: &Session<'_>, claim: &JobClaim) -> Result<JobsClaimed, Fault> {
    let asked = claim
        .max
        .min(u32::try_from(JOB_MAX_BATCH).unwrap_or(u32::MAX));
    let found = queue::find(session, &claim.queue)?;
    let Some(queue) = found.filter(|found| !found.settings().paused && asked > 0) else {
        return Ok(JobsClaimed::default());
    };
    wait::promote(session, queue.id)?;
    let mut room = room(session, &queue)?;
    let mut taken_back = room.least() < asked;
    if taken_back {
        let everywhere = room.all < asked;
        expire::take_back_for_claim(session, (!everywhere).then_some(queue.id))?;
        room = self::room(session, &queue)?;
    }
    // One more than there is room for shows whether the limit kept it from being claimed.
    let most = asked.min(room.least().saturating_add(1));
    let order = Order {
        session,
        queue: &queue,
        lease: claim.lease.map_or(queue.settings().lease, bounded),
    };
    let mut picked = order.pick(most)?;
    if picked.jobs.len() < size(most) && !taken_back {
        taken_back = expire::take_back_for_claim(session, Some(queue.id))?;
        if taken_back {
            picked = order.pick(most)?;
        }
    }
    let at_limit = picked.jobs.len() > size(room.least());
    picked.jobs.truncate(size(room.least()));
    let jobs = order.take(picked, &claim.worker)?;
    let next_due_in = if jobs.len() < size(asked) {
        wait::next_due_in(session, queue.id)?
    } else {
        None
    };
    Ok(JobsClaimed {
        jobs,
        at_limit,
        next_due_in,
    })
}

fn size(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// How many more jobs may run.
struct Room {
    queue: u32,
    all: u32,
}

impl Room {
    fn least(&self) -> u32 {
        self.queue.min(self.all)
    }
}

fn room(session: &Session<'_>, known: &Known) -> Result<Room, Fault> {
    let queue = match known.settings().limit {
        None => u32::MAX,
        Some(limit) => limit.saturating_sub(queue::running(session, known.id)?),
    };
    let all = match queue::limit(session)? {
        None => u32::MAX,
        Some(limit) => limit.saturating_sub(queue::all_running(session)?),
    };
    Ok(Room { queue, all })
}

/// The order in which a queue's jobs are claimed.
struct Order<'a> {
    session: &'a Session<'a>,
    queue: &'a Known,
    lease: Duration,
}

/// Jobs in the order of claiming, not taken yet.
struct Picked {
    jobs: Vec<Candidate>,
    parts: Vec<Part>,
}

struct Candidate {
    job: ClaimedJob,
    /// When it was to run, if it waited; a fresh one never did.
    waited: Option<i64>,
    /// Whether it is a node of a graph.
    node: bool,
}

/// The first jobs of a run, up to `last`, and those of them that there are.
struct Part {
    run: Run,
    last: i64,
    jobs: Vec<i64>,
}

impl Order<'_> {
    /// The first jobs, `most` at most.
    fn pick(&self, most: u32) -> Result<Picked, Fault> {
        let waiting = self
            .session
            .all(WAITING, params![self.queue.id, most], |row| {
                self.waiting(row)
            })?;
        let mut parts = Vec::new();
        let mut fresh = Vec::new();
        let mut left = i64::from(most);
        for run in line::first(self.session, self.queue.id, most)? {
            let last = run.last.min(run.first + left - 1);
            left -= last - run.first + 1;
            let found = fresh.len();
            self.session.often(FRESH, |statement| {
                let mut rows = statement.query([run.first, last])?;
                while let Some(row) = rows.next()? {
                    fresh.push(self.candidate(row)?);
                }
                Ok(())
            })?;
            let jobs = fresh[found..].iter().map(|c| c.job.id.0).collect();
            parts.push(Part { run, last, jobs });
        }
        let jobs = merge(waiting, fresh, size(most));
        Ok(Picked { jobs, parts })
    }

    /// Takes them out of where they were, gives them their leases, and returns them.
    fn take(&self, picked: Picked, worker: &str) -> Result<Vec<ClaimedJob>, Fault> {
        let fresh = picked.jobs.iter().filter(|c| c.waited.is_none()).count();
        self.take_fresh(&picked.parts, fresh)?;
        if picked.jobs.is_empty() {
            return Ok(Vec::new());
        }
        let ends_at = later(self.session.now, self.lease);
        let mut entries = Vec::with_capacity(picked.jobs.len());
        for Candidate { job, waited, .. } in &picked.jobs {
            if waited.is_some() {
                wait::remove(self.session, job.id.0)?;
            }
            entries.push(Entry {
                job: job.id.0,
                attempt: job.attempt,
                ends_at,
                // One that waited only because it was given back at once counts as due since then.
                run_at: *waited,
            });
        }
        let nodes = picked.jobs.iter().any(|candidate| candidate.node);
        let first = lease::add(self.session, self.queue.id, worker, &entries, nodes)?;
        let lease_expires_at = moment(ends_at)?;
        let jobs = picked.jobs.into_iter().zip(0_i64..);
        let pages = i64::try_from(MOST).unwrap_or(i64::MAX);
        Ok(jobs
            .map(|(candidate, number)| ClaimedJob {
                token: first + number / pages,
                lease_expires_at,
                ..candidate.job
            })
            .collect())
    }

    /// Takes the first `taken` fresh jobs off the front of their runs. Ids that no job has any more go with them.
    fn take_fresh(&self, parts: &[Part], taken: usize) -> Result<(), Fault> {
        let mut left = taken;
        for part in parts {
            if left < part.jobs.len() {
                if let Some(last) = left.checked_sub(1) {
                    line::take(self.session, &part.run, part.jobs[last])?;
                }
                return Ok(());
            }
            line::take(self.session, &part.run, part.last)?;
            left -= part.jobs.len();
        }
        Ok(())
    }

    fn waiting(&self, row: &Row<'_>) -> Result<Candidate, Fault> {
        let mut candidate = self.candidate(row)?;
        let attempts: u32 = row.get(13)?;
        candidate.waited = Some(row.get(14)?);
        candidate.job.attempt = attempts + 1;
        candidate.job.last_error = row.get(15)?;
        let progress: Option<String> = row.get(16)?;
        candidate.job.progress = progress.map(JsonText::trusted);
        Ok(candidate)
    }

    fn candidate(&self, row: &Row<'_>) -> Result<Candidate, Fault> {
        let settings = self.queue.settings();
        let Wishes {
            max_attempts,
            backoff,
        } = wish::wishes(row, 5)?;
        let created_at = moment(row.get(2)?)?;
        Ok(Candidate {
            job: ClaimedJob {
                id: JobId(row.get(0)?),
                token: 0,
                kind: row.get(3)?,
                payload: JsonText::trusted(row.get(4)?),
                priority: row.get(1)?,
                attempt: 1,
                retry: settings.retry_of(max_attempts, backoff),
                timeout: wish::timeout(row, 10)?.or(settings.timeout),
                progress: None,
                last_error: None,
                trace_context: row.get(11)?,
                created_at,
                lease: self.lease,
                lease_expires_at: created_at,
            },
            waited: None,
            node: row.get(12)?,
        })
    }
}

/// One line of two. Each keeps its own order, so what is taken of the fresh ones is always their beginning.
fn merge(waiting: Vec<Candidate>, mut fresh: Vec<Candidate>, most: usize) -> Vec<Candidate> {
    if waiting.is_empty() {
        fresh.truncate(most);
        return fresh;
    }
    let place = |c: &Candidate| (-i32::from(c.job.priority), c.job.created_at, c.job.id);
    let (mut waiting, mut fresh) = (waiting.into_iter().peekable(), fresh.into_iter().peekable());
    let next = || match (waiting.peek(), fresh.peek()) {
        (Some(one), Some(other)) if place(one) < place(other) => waiting.next(),
        (Some(_), None) => waiting.next(),
        (_, _) => fresh.next(),
    };
    std::iter::from_fn(next).take(most).collect()
}
