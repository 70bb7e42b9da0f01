//! Claims jobs of a queue, up to the requested number and the limits. Merges waiting and fresh jobs in claim order; each page of leases has one fencing token.

use crate::error::Fault;
use crate::job::line::{self, Run};
use crate::job::overrides::{self, RetryOverrides};
use crate::job::page::{Entry, PAGE_CAPACITY};
use crate::job::unusable::{self, UnusableJob};
use crate::job::{expire, group, lease, turns, wait};
use crate::notification::NotifyTarget;
use crate::queue::{self, QueueRow};
use crate::row::{later, timestamp};
use crate::session::Session;
use leasehold_core::job::{ClaimedJob, JobClaim, JobsClaimed};
use leasehold_core::lease::bounded;
use leasehold_core::limits::{CLAIM_MAX_BYTES, JOB_MAX_BATCH};
use leasehold_core::{JobId, JsonText};
use leasehold_store::sql;
use rusqlite::{Row, params};
use std::time::Duration;

pub(super) const WAITING: &str = sql!("job/claim_waiting");
const FRESH: &str = sql!("job/claim_fresh");

/// How often one claim removes jobs that nothing can run, each time up to as many as it takes.
pub(super) const MAX_REMOVALS: usize = 8;

pub(crate) fn claim(session: &Session<'_>, claim: &JobClaim) -> Result<JobsClaimed, Fault> {
    let requested = claim
        .max
        .min(u32::try_from(JOB_MAX_BATCH).unwrap_or(u32::MAX));
    let found = queue::find(session, &claim.queue)?;
    let Some(queue) = found.filter(|found| !found.settings().paused && requested > 0) else {
        return Ok(JobsClaimed::default());
    };
    if queue.has_groups {
        return turns::claim(session, claim, &queue, requested);
    }
    wait::promote(session, queue.id)?;
    let mut capacity = remaining_capacity(session, &queue)?;
    let mut requeued = capacity.min() < requested;
    if requeued {
        let everywhere = capacity.all < requested;
        expire::requeue_expired_for_claim(session, (!everywhere).then_some(queue.id))?;
        capacity = remaining_capacity(session, &queue)?;
    }
    // Select one job more than the limit allows, to know whether the limit was reached.
    let most = requested.min(capacity.min().saturating_add(1));
    let order = ClaimOrder {
        session,
        queue: &queue,
        lease: claim.lease.map_or(queue.settings().lease, bounded),
    };
    let mut selected = order.select(most)?;
    if selected.jobs.len() < size(most) && !selected.is_cut && !requeued {
        requeued = expire::requeue_expired_for_claim(session, Some(queue.id))?;
        if requeued {
            selected = order.select(most)?;
        }
    }
    let at_limit = selected.jobs.len() > size(capacity.min());
    selected.jobs.truncate(size(capacity.min()));
    if selected.is_cut {
        // Other claims take the jobs that did not fit.
        session.notify(NotifyTarget::Workers);
    }
    let jobs = order.lease_selected(selected, &claim.worker)?;
    let next_due_in = if jobs.len() < size(requested) {
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

pub(super) fn size(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// How many more jobs may run, in the queue and in all queues.
pub(super) struct RemainingCapacity {
    queue: u32,
    pub(super) all: u32,
}

impl RemainingCapacity {
    pub(super) fn min(&self) -> u32 {
        self.queue.min(self.all)
    }
}

pub(super) fn remaining_capacity(
    session: &Session<'_>,
    row: &QueueRow,
) -> Result<RemainingCapacity, Fault> {
    let queue = match row.settings().limit {
        None => u32::MAX,
        Some(limit) => limit.saturating_sub(queue::running(session, row.id)?),
    };
    let all = match queue::limit(session)? {
        None => u32::MAX,
        Some(limit) => limit.saturating_sub(queue::all_running(session)?),
    };
    Ok(RemainingCapacity { queue, all })
}

/// Selects and leases a queue's jobs in claim order.
pub(super) struct ClaimOrder<'a> {
    pub(super) session: &'a Session<'a>,
    pub(super) queue: &'a QueueRow,
    pub(super) lease: Duration,
}

/// Jobs in claim order, not leased yet.
#[derive(Default)]
pub(super) struct Selection {
    pub(super) jobs: Vec<Candidate>,
    pub(super) parts: Vec<RunPrefix>,
    /// Whether the next job did not fit into [`CLAIM_MAX_BYTES`].
    pub(super) is_cut: bool,
}

pub(super) struct Candidate {
    job: ClaimedJob,
    /// The job's `run_at` if it has a waiting row; none for a job of a line.
    waited: Option<i64>,
    /// Whether the job runs a node of a graph.
    node: bool,
}

impl Candidate {
    /// Returns the bytes that count towards [`CLAIM_MAX_BYTES`].
    pub(super) fn bytes(&self) -> usize {
        match self.node {
            true => self.job.node_bytes(),
            false => self.job.bytes(),
        }
    }
}

/// The ids of a run up to `last`, and the jobs of them that exist.
pub(super) struct RunPrefix {
    run: Run,
    last: i64,
    jobs: Vec<i64>,
}

impl ClaimOrder<'_> {
    /// Returns the first jobs, up to `most`. Removes those that nothing can run: deleted by hand, or unreadable.
    fn select(&self, most: u32) -> Result<Selection, Fault> {
        for _ in 0..MAX_REMOVALS {
            let mut unusable = Vec::new();
            let selection = self.select_usable(most, &mut unusable)?;
            if unusable.is_empty() {
                return Ok(selection);
            }
            unusable::remove(self.session, self.queue.id, unusable)?;
        }
        // The next claim goes on.
        self.session.notify(NotifyTarget::Workers);
        Ok(Selection::default())
    }

    /// Returns the first jobs. If some of them are unusable, the selection must not be leased.
    pub(super) fn select_usable(
        &self,
        most: u32,
        unusable: &mut Vec<UnusableJob>,
    ) -> Result<Selection, Fault> {
        let mut waiting = BoundedRows::default();
        self.session.with_statement(WAITING, |statement| {
            let mut rows = statement.query(params![self.queue.id, most, group::NONE, 0])?;
            while !waiting.is_full()
                && let Some(row) = rows.next()?
            {
                let is_orphan: bool = row.get(17)?;
                match self.waiting(row) {
                    _ if is_orphan => unusable.push(UnusableJob::deleted(row.get(0)?)),
                    Ok(candidate) => waiting.push(candidate),
                    Err(fault) => unusable.push(UnusableJob::unreadable(row.get(0)?, None, fault)),
                }
            }
            Ok(())
        })?;
        let mut parts = Vec::new();
        let mut fresh = BoundedRows::default();
        let mut left = i64::from(most);
        for run in line::first(self.session, self.queue.id, most)? {
            let mut last = run.last.min(run.first + left - 1);
            left -= last - run.first + 1;
            let found = fresh.rows.len();
            self.session.with_statement(FRESH, |statement| {
                let mut rows = statement.query([run.first, last])?;
                while !fresh.is_full()
                    && let Some(row) = rows.next()?
                {
                    match self.candidate(row) {
                        Ok(candidate) => fresh.push(candidate),
                        Err(fault) => {
                            let line = Some(run.priority);
                            unusable.push(UnusableJob::unreadable(row.get(0)?, line, fault));
                        }
                    }
                }
                Ok(())
            })?;
            let jobs: Vec<i64> = fresh.rows[found..].iter().map(|c| c.job.id.0).collect();
            if fresh.is_full() {
                last = jobs.last().copied().unwrap_or(last);
            }
            parts.push(RunPrefix { run, last, jobs });
            if fresh.is_full() {
                break;
            }
        }
        let mut jobs = merge(waiting.rows, fresh.rows, size(most));
        let fitting = fitting(&jobs);
        let is_cut = fitting < jobs.len();
        jobs.truncate(fitting);
        Ok(Selection {
            jobs,
            parts,
            is_cut,
        })
    }

    /// Removes the selected jobs from their line or waiting row, writes their leases and returns them.
    pub(super) fn lease_selected(
        &self,
        selected: Selection,
        worker: &str,
    ) -> Result<Vec<ClaimedJob>, Fault> {
        let fresh = selected.jobs.iter().filter(|c| c.waited.is_none()).count();
        self.remove_fresh(&selected.parts, fresh)?;
        if selected.jobs.is_empty() {
            return Ok(Vec::new());
        }
        let ends_at = later(self.session.now, self.lease);
        let mut entries = Vec::with_capacity(selected.jobs.len());
        for Candidate { job, waited, .. } in &selected.jobs {
            if waited.is_some() {
                wait::remove(self.session, job.id.0)?;
            }
            entries.push(Entry {
                job: job.id.0,
                attempt: job.attempt,
                ends_at,
                // A job that was returned to the queue is due since then.
                run_at: waited.filter(|at| *at != job.created_at.as_microsecond()),
            });
        }
        let nodes = selected.jobs.iter().any(|candidate| candidate.node);
        let first = lease::add(self.session, self.queue.id, worker, &entries, nodes)?;
        let lease_expires_at = timestamp(ends_at)?;
        let jobs = selected.jobs.into_iter().zip(0_i64..);
        let pages = i64::try_from(PAGE_CAPACITY).unwrap_or(i64::MAX);
        Ok(jobs
            .map(|(candidate, number)| ClaimedJob {
                token: first + number / pages,
                lease_expires_at,
                ..candidate.job
            })
            .collect())
    }

    /// Removes the first `taken` fresh jobs from the front of their runs, together with the ids of deleted jobs.
    fn remove_fresh(&self, parts: &[RunPrefix], taken: usize) -> Result<(), Fault> {
        let mut left = taken;
        for part in parts {
            if left < part.jobs.len() {
                if let Some(last) = left.checked_sub(1) {
                    line::remove_front(self.session, &part.run, part.jobs[last])?;
                }
                return Ok(());
            }
            line::remove_front(self.session, &part.run, part.last)?;
            left -= part.jobs.len();
        }
        Ok(())
    }

    pub(super) fn waiting(&self, row: &Row<'_>) -> Result<Candidate, Fault> {
        let mut candidate = self.candidate(row)?;
        let attempts: u32 = row.get(13)?;
        candidate.waited = Some(row.get(14)?);
        candidate.job.attempt = attempts + 1;
        candidate.job.last_error = row.get(15)?;
        let progress: Option<String> = row.get(16)?;
        candidate.job.progress = progress.map(JsonText::trusted);
        candidate.job.group = row.get(18)?;
        Ok(candidate)
    }

    fn candidate(&self, row: &Row<'_>) -> Result<Candidate, Fault> {
        let settings = self.queue.settings();
        let RetryOverrides {
            max_attempts,
            backoff,
        } = overrides::retry_overrides(row, 5)?;
        let created_at = timestamp(row.get(2)?)?;
        Ok(Candidate {
            job: ClaimedJob {
                id: JobId(row.get(0)?),
                token: 0,
                kind: row.get(3)?,
                group: None,
                payload: JsonText::trusted(row.get(4)?),
                priority: row.get(1)?,
                attempt: 1,
                retry: settings.retry_of(max_attempts, backoff),
                timeout: overrides::timeout(row, 10)?.or(settings.timeout),
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

/// Rows in claim order, up to the first that does not fit into [`CLAIM_MAX_BYTES`].
#[derive(Default)]
struct BoundedRows {
    rows: Vec<Candidate>,
    bytes: usize,
}

impl BoundedRows {
    fn push(&mut self, candidate: Candidate) {
        self.bytes = self.bytes.saturating_add(candidate.bytes());
        self.rows.push(candidate);
    }

    fn is_full(&self) -> bool {
        self.bytes > CLAIM_MAX_BYTES
    }
}

/// Returns how many of the jobs fit into [`CLAIM_MAX_BYTES`], at least one.
fn fitting(jobs: &[Candidate]) -> usize {
    let mut bytes = 0;
    let fits = |candidate: &&Candidate| {
        bytes = candidate.bytes().saturating_add(bytes);
        bytes <= CLAIM_MAX_BYTES
    };
    jobs.iter().take_while(fits).count().max(1).min(jobs.len())
}

/// Merges waiting and fresh jobs. Each list keeps its order, so the result takes fresh jobs from the front.
fn merge(waiting: Vec<Candidate>, mut fresh: Vec<Candidate>, most: usize) -> Vec<Candidate> {
    if waiting.is_empty() {
        fresh.truncate(most);
        return fresh;
    }
    let sort_key = |c: &Candidate| (-i32::from(c.job.priority), c.job.created_at, c.job.id);
    let (mut waiting, mut fresh) = (waiting.into_iter().peekable(), fresh.into_iter().peekable());
    let next = || match (waiting.peek(), fresh.peek()) {
        (Some(one), Some(other)) if sort_key(one) < sort_key(other) => waiting.next(),
        (Some(_), None) => waiting.next(),
        (_, _) => fresh.next(),
    };
    std::iter::from_fn(next).take(most).collect()
}
