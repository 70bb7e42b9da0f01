//! What a worker says became of its jobs: completed, failed and perhaps tried again, snoozed, given back. What follows from the end of a
//! node is in `graph::finish`.

use crate::error::Fault;
use crate::job::NodeOf;
use crate::job::end::{self, End, Ends};
use crate::job::lease::Held;
use crate::job::wait::{self, Waiting};
use crate::job::wish::{self, Wishes};
use crate::queue::Seen;
use crate::row::{Columns, Place, later, moment};
use crate::session::Session;
use crate::wake::Ring;
use leasehold_core::job::{
    Again, JobEnd, JobFinish, JobFinished, JobRef, JobRetry, bounded_wait, jitter,
};
use leasehold_core::{ExecutionId, JobId};
use leasehold_store::sql;
use std::collections::HashSet;
use std::time::Duration;

const OF: &str = sql!("job/of");

/// Ends the claims of jobs that are no nodes, and of nodes that go back into their queue and were no attempt. None is answered for other nodes, and nothing
/// was changed of them.
pub(crate) fn finish(
    session: &Session<'_>,
    worker: &str,
    finishes: &[JobFinish],
) -> Result<Vec<Option<JobFinished>>, Fault> {
    let mut call = Call::by(session, worker);
    let mut answers = Vec::with_capacity(finishes.len());
    let mut left = HashSet::new();
    for finish in finishes {
        let is_left = match call.node(finish.claim)? {
            // Of two ends of one claim the first counts.
            Some(_) => !finish.end.is_no_attempt() || left.contains(&finish.claim),
            None => false,
        };
        answers.push(match is_left {
            true => {
                left.insert(finish.claim);
                None
            }
            false => Some(match call.take(finish.claim)? {
                None => JobFinished::LeaseLost,
                Some(taken) => call.finish(taken, &finish.end, Results::Kept)?,
            }),
        });
    }
    call.write()?;
    Ok(answers)
}

/// A lease taken from its worker.
#[derive(Clone, Copy)]
pub(crate) struct Taken {
    claim: JobRef,
    queue: i64,
    claimed_at: i64,
    pub(crate) attempt: u32,
    run_at: Option<i64>,
}

/// Whether what a completed job came to is kept with its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Results {
    /// It is.
    Kept,
    /// It is kept elsewhere.
    Elsewhere,
}

/// What a worker ends in one call. Nothing is written before `Call::write` but what has jobs wait.
pub(crate) struct Call<'a> {
    session: &'a Session<'a>,
    worker: &'a str,
    held: Held<'a>,
    seen: Seen<'a>,
    ended: Vec<End<'a>>,
    /// Completed ones of queues that keep none.
    forgotten: Vec<i64>,
}

impl<'a> Call<'a> {
    pub(crate) fn by(session: &'a Session<'a>, worker: &'a str) -> Self {
        Self {
            session,
            worker,
            held: Held::by(session, worker),
            seen: Seen::by(session),
            ended: Vec::new(),
            forgotten: Vec::new(),
        }
    }

    /// The node that a job which the worker has does; none if it does none.
    pub(crate) fn node(&mut self, claim: JobRef) -> Result<Option<NodeOf>, Fault> {
        if !self.held.may_be_node(claim)? {
            return Ok(None);
        }
        Ok(of(self.session, claim.job.0)?.and_then(|(of, _)| of.node))
    }

    /// Takes a lease from the worker; none if it has it no longer.
    pub(crate) fn take(&mut self, claim: JobRef) -> Result<Option<Taken>, Fault> {
        Ok(self.held.take(claim)?.map(|(entry, page)| Taken {
            claim,
            queue: page.queue,
            claimed_at: page.claimed_at,
            attempt: entry.attempt,
            run_at: entry.run_at,
        }))
    }

    /// Writes what became of pages and jobs.
    pub(crate) fn write(self) -> Result<(), Fault> {
        self.held.put()?;
        let ends = Ends::of(self.session);
        if !self.ended.is_empty() {
            ends.keep(self.ended)?;
        }
        if !self.forgotten.is_empty() {
            ends.forget(self.forgotten)?;
        }
        if self.seen.any_limited()? {
            self.session.ring(Ring::Workers);
        }
        Ok(())
    }

    pub(crate) fn finish(
        &mut self,
        taken: Taken,
        end: &'a JobEnd,
        results: Results,
    ) -> Result<JobFinished, Fault> {
        let settings = *self.seen.get(taken.queue)?.settings();
        match end {
            JobEnd::Completed { result } => {
                if settings.keep_completed {
                    let result = result.as_ref().filter(|_| results == Results::Kept);
                    self.end(taken, result.map(|result| result.as_str()), None);
                } else {
                    self.forgotten.push(taken.claim.job.0);
                }
                Ok(JobFinished::Completed)
            }
            JobEnd::Failed { error, again } => {
                let error = end::kept(error);
                let found = of(self.session, taken.claim.job.0)?;
                let again = found.and_then(|(of, wishes)| {
                    let retry = settings.retry_of(wishes.max_attempts, wishes.backoff);
                    let after = wait_before(&retry, *again, taken.attempt, taken.claim)?;
                    Some((of, after))
                });
                let Some((of, after)) = again else {
                    self.end(taken, None, Some(error));
                    return Ok(JobFinished::Failed);
                };
                end::note(self.session, taken.claim.job.0, &error)?;
                self.wait(taken, &of, after, taken.attempt)
            }
            JobEnd::Snoozed(after) => self.not_now(taken, *after),
            JobEnd::GivenBack => self.not_now(taken, Duration::ZERO),
        }
    }

    /// Queued again, and the claim was no attempt.
    fn not_now(&mut self, taken: Taken, after: Duration) -> Result<JobFinished, Fault> {
        match of(self.session, taken.claim.job.0)? {
            Some((of, _)) => self.wait(taken, &of, after, taken.attempt.saturating_sub(1)),
            // Someone deleted the job by hand: there is nothing to queue again.
            None => Ok(JobFinished::LeaseLost),
        }
    }

    fn wait(
        &self,
        taken: Taken,
        of: &Of,
        after: Duration,
        attempts: u32,
    ) -> Result<JobFinished, Fault> {
        let run_at = later(self.session.now, bounded_wait(after));
        wait::add(
            self.session,
            &of.waiting(run_at, attempts, taken.claim.token),
        )?;
        Ok(JobFinished::Queued {
            run_at: moment(run_at)?,
        })
    }

    fn end(&mut self, taken: Taken, result: Option<&'a str>, error: Option<String>) {
        self.ended.push(End {
            job: taken.claim.job.0,
            queue: taken.queue,
            failed: error.is_some(),
            attempts: taken.attempt,
            token: taken.claim.token,
            run_at: taken.run_at,
            started_at: Some(taken.claimed_at),
            worker: Some(self.worker),
            result,
            error,
        });
    }
}

/// How long a failed job waits before it is tried again; none if it is not.
fn wait_before(retry: &JobRetry, again: Again, attempt: u32, claim: JobRef) -> Option<Duration> {
    match again {
        Again::Policy => retry.after_failure(attempt, jitter(claim.job, claim.token)),
        Again::After(after) => (attempt < retry.max_attempts).then_some(after),
        Again::Never => None,
    }
}

/// What a job takes with it wherever it is placed.
pub(super) struct Of {
    pub(super) job: JobId,
    pub(super) queue: i64,
    pub(super) priority: i16,
    created_at: i64,
    /// The node of a graph that it does.
    pub(super) node: Option<NodeOf>,
}

impl Of {
    /// The job, queued again.
    pub(super) fn waiting(&self, run_at: i64, attempts: u32, token: i64) -> Waiting {
        Waiting {
            job: self.job.0,
            queue: self.queue,
            priority: self.priority,
            created_at: self.created_at,
            run_at,
            attempts,
            token,
        }
    }
}

/// The job and its wishes; none if there is no such job.
pub(super) fn of(session: &Session<'_>, job: i64) -> Result<Option<(Of, Wishes)>, Fault> {
    session.maybe(OF, [job], |row| {
        let execution: Option<ExecutionId> = row.id_or_none("execution_id")?;
        let place: Option<Place> = row.get(9)?;
        let of = Of {
            job: JobId(job),
            queue: row.get(0)?,
            priority: row.get(1)?,
            created_at: row.get(2)?,
            node: execution
                .zip(place)
                .map(|(execution, Place(place))| NodeOf { execution, place }),
        };
        Ok((of, wish::wishes(row, 3)?))
    })
}
