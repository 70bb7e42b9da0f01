//! Finishes jobs as their worker reports: completed, failed (with or without retry), snoozed or returned to the queue. `graph::finish`
//! handles the consequences for graphs.

use crate::error::Fault;
use crate::job::NodeRef;
use crate::job::end::{self, EndWriter, EndedJob};
use crate::job::group::{self, GroupChanges};
use crate::job::lease::WorkerLeases;
use crate::job::overrides::{self, RetryOverrides};
use crate::job::wait::{self, WaitingJob};
use crate::notification::NotifyTarget;
use crate::queue::QueueCache;
use crate::row::{Columns, NodeIndex, later, timestamp};
use crate::session::Session;
use leasehold_core::job::{
    JobEnd, JobFinish, JobFinished, JobRef, JobRetry, RetryMode, bounded_wait, jitter,
};
use leasehold_core::{ExecutionId, JobId};
use leasehold_store::sql;
use std::collections::HashSet;
use std::time::Duration;

const HEADER: &str = sql!("job/header");

/// Finishes jobs that are not nodes, and nodes that return to their queue without counting as an attempt. The answer for other nodes is
/// none, and they stay unchanged.
pub(crate) fn finish(
    session: &Session<'_>,
    worker: &str,
    finishes: &[JobFinish],
) -> Result<Vec<Option<JobFinished>>, Fault> {
    let mut call = FinishCall::new(session, worker);
    let mut answers = Vec::with_capacity(finishes.len());
    let mut left = HashSet::new();
    for finish in finishes {
        let is_left = match call.node(finish.claim)? {
            // The first of two ends for one claim wins.
            Some(_) => !finish.end.refunds_attempt() || left.contains(&finish.claim),
            None => false,
        };
        answers.push(match is_left {
            true => {
                left.insert(finish.claim);
                None
            }
            false => Some(match call.take(finish.claim)? {
                None => JobFinished::LeaseLost,
                Some(lease) => call.finish(lease, &finish.end, ResultStorage::WithJob)?,
            }),
        });
    }
    call.write()?;
    Ok(answers)
}

/// A lease removed from its page.
#[derive(Clone, Copy)]
pub(crate) struct RemovedLease {
    claim: JobRef,
    queue: i64,
    claimed_at: i64,
    pub(crate) attempt: u32,
    run_at: Option<i64>,
}

/// Where the result of a completed job is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultStorage {
    /// With the job's end.
    WithJob,
    /// As the node's output.
    WithNode,
}

/// The jobs that a worker finishes in one call. `FinishCall::write` writes everything except waiting rows, which are written at once.
pub(crate) struct FinishCall<'a> {
    session: &'a Session<'a>,
    worker: &'a str,
    leases: WorkerLeases<'a>,
    queues: QueueCache<'a>,
    ended: Vec<EndedJob<'a>>,
    /// Completed jobs of queues that do not keep them.
    deleted: Vec<i64>,
    groups: GroupChanges,
}

impl<'a> FinishCall<'a> {
    pub(crate) fn new(session: &'a Session<'a>, worker: &'a str) -> Self {
        Self {
            session,
            worker,
            leases: WorkerLeases::new(session, worker),
            queues: QueueCache::new(session),
            ended: Vec::new(),
            deleted: Vec::new(),
            groups: GroupChanges::default(),
        }
    }

    /// Returns the node that a job of this worker runs; none if it runs none.
    pub(crate) fn node(&mut self, claim: JobRef) -> Result<Option<NodeRef>, Fault> {
        if !self.leases.may_be_node(claim)? {
            return Ok(None);
        }
        let found = job_header(self.session, claim.job.0)?;
        Ok(found.and_then(|(header, _)| header.node))
    }

    /// Removes a lease; none if the worker has lost it.
    pub(crate) fn take(&mut self, claim: JobRef) -> Result<Option<RemovedLease>, Fault> {
        Ok(self.leases.take(claim)?.map(|(entry, page)| RemovedLease {
            claim,
            queue: page.queue,
            claimed_at: page.claimed_at,
            attempt: entry.attempt,
            run_at: entry.run_at,
        }))
    }

    /// Writes the changed pages, the changes of groups and the job ends.
    pub(crate) fn write(self) -> Result<(), Fault> {
        self.leases.write_back()?;
        self.groups.write(self.session)?;
        let ends = EndWriter::new(self.session);
        if !self.ended.is_empty() {
            ends.record(self.ended)?;
        }
        if !self.deleted.is_empty() {
            ends.delete(self.deleted)?;
        }
        if self.queues.any_limited()? {
            self.session.notify(NotifyTarget::Workers);
        }
        Ok(())
    }

    pub(crate) fn finish(
        &mut self,
        lease: RemovedLease,
        end: &'a JobEnd,
        results: ResultStorage,
    ) -> Result<JobFinished, Fault> {
        let settings = *self.queues.get(lease.queue)?.settings();
        if let Some(limit) = settings.group_limit {
            match job_header(self.session, lease.claim.job.0)? {
                Some((header, _)) => self.groups.ended(header.job.0, lease.queue, header.group()),
                None => self.groups.lost(lease.queue, limit),
            }
        }
        match end {
            JobEnd::Completed { result } => {
                if settings.keep_completed {
                    let result = result
                        .as_ref()
                        .filter(|_| results == ResultStorage::WithJob);
                    self.end(lease, result.map(|result| result.as_str()), None);
                } else {
                    self.deleted.push(lease.claim.job.0);
                }
                Ok(JobFinished::Completed)
            }
            JobEnd::Failed { error, retry_mode } => {
                let error = end::clip_error(error);
                let found = job_header(self.session, lease.claim.job.0)?;
                let again = found.and_then(|(header, overrides)| {
                    let retry = settings.retry_of(overrides.max_attempts, overrides.backoff);
                    let after = wait_before(&retry, *retry_mode, lease.attempt, lease.claim)?;
                    Some((header, after))
                });
                let Some((header, after)) = again else {
                    self.end(lease, None, Some(error));
                    return Ok(JobFinished::Failed);
                };
                end::save_error(self.session, lease.claim.job.0, &error)?;
                self.requeue(lease, &header, after, lease.attempt)
            }
            JobEnd::Snoozed(after) => self.requeue_uncounted(lease, *after),
            JobEnd::Returned => self.requeue_uncounted(lease, Duration::ZERO),
        }
    }

    /// Returns a job to its queue without counting an attempt.
    fn requeue_uncounted(
        &mut self,
        lease: RemovedLease,
        after: Duration,
    ) -> Result<JobFinished, Fault> {
        match job_header(self.session, lease.claim.job.0)? {
            Some((header, _)) => {
                self.requeue(lease, &header, after, lease.attempt.saturating_sub(1))
            }
            // The job was deleted by hand.
            None => Ok(JobFinished::LeaseLost),
        }
    }

    fn requeue(
        &mut self,
        lease: RemovedLease,
        header: &JobHeader,
        after: Duration,
        attempts: u32,
    ) -> Result<JobFinished, Fault> {
        let run_at = later(self.session.now, bounded_wait(after));
        wait::add(
            self.session,
            &header.waiting(run_at, attempts, lease.claim.token),
        )?;
        if let Some(group) = header.group.as_deref()
            && run_at <= self.session.now
        {
            self.groups.due(header.job.0, header.queue, group);
        }
        Ok(JobFinished::Queued {
            run_at: timestamp(run_at)?,
        })
    }

    fn end(&mut self, lease: RemovedLease, result: Option<&'a str>, error: Option<String>) {
        self.ended.push(EndedJob {
            job: lease.claim.job.0,
            queue: lease.queue,
            failed: error.is_some(),
            attempts: lease.attempt,
            token: lease.claim.token,
            run_at: lease.run_at,
            started_at: Some(lease.claimed_at),
            worker: Some(self.worker),
            result,
            error,
        });
    }
}

/// Returns the delay before a failed job is retried; none if it is not.
fn wait_before(
    retry: &JobRetry,
    retry_mode: RetryMode,
    attempt: u32,
    claim: JobRef,
) -> Option<Duration> {
    match retry_mode {
        RetryMode::Policy => retry.after_failure(attempt, jitter(claim.job, claim.token)),
        RetryMode::After(after) => (attempt < retry.max_attempts).then_some(after),
        RetryMode::Never => None,
    }
}

/// The fields of a job that are needed to requeue or end it.
pub(super) struct JobHeader {
    pub(super) job: JobId,
    pub(super) queue: i64,
    pub(super) priority: i16,
    created_at: i64,
    /// The graph node that the job runs.
    pub(super) node: Option<NodeRef>,
    group: Option<String>,
}

impl JobHeader {
    /// Returns the job's group, or [`group::NONE`].
    pub(super) fn group(&self) -> &str {
        self.group.as_deref().unwrap_or(group::NONE)
    }

    /// Returns the waiting row that requeues the job.
    pub(super) fn waiting(&self, run_at: i64, attempts: u32, token: i64) -> WaitingJob<'_> {
        WaitingJob {
            job: self.job.0,
            queue: self.queue,
            priority: self.priority,
            created_at: self.created_at,
            run_at,
            attempts,
            token,
            group: self.group(),
        }
    }
}

/// Returns the job's header and retry overrides; none if the job does not exist.
pub(super) fn job_header(
    session: &Session<'_>,
    job: i64,
) -> Result<Option<(JobHeader, RetryOverrides)>, Fault> {
    session.optional(HEADER, [job], |row| {
        let execution: Option<ExecutionId> = row.id_or_none("execution_id")?;
        let index: Option<NodeIndex> = row.get(9)?;
        let header = JobHeader {
            job: JobId(job),
            queue: row.get(0)?,
            priority: row.get(1)?,
            created_at: row.get(2)?,
            node: execution
                .zip(index)
                .map(|(execution, NodeIndex(index))| NodeRef { execution, index }),
            group: row.get(10)?,
        };
        Ok((header, overrides::retry_overrides(row, 3)?))
    })
}
