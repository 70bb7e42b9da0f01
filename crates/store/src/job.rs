//! Jobs: parameters and outcomes.

use crate::{Result, Store};
use leasehold_core::job::{JobId, JobRetry, JobStatus};
use leasehold_core::payload::JsonText;
use leasehold_core::retry::Backoff;
use leasehold_core::{ExecutionId, Timestamp};
use std::time::Duration;

/// A job as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// The queue it is in.
    pub queue: String,
    /// What sort of work it is; handlers are found by it.
    pub kind: String,
    /// Where it is.
    pub status: JobStatus,
    /// Higher goes first.
    pub priority: i16,
    /// What to work on.
    pub payload: JsonText,
    /// Not before this.
    pub run_at: Timestamp,
    /// Claims that count, the current one included.
    pub attempts: u32,
    /// How often and when it is tried again: its own wish, else its queue's.
    pub retry: JobRetry,
    /// How long an attempt may take: its own wish, else its queue's.
    pub timeout: Option<Duration>,
    /// What makes a repeated enqueue the same, as long as it holds.
    pub dedup_key: Option<String>,
    /// The worker that has it, while running.
    pub claimed_by: Option<String>,
    /// When that worker took it, while running.
    pub claimed_at: Option<Timestamp>,
    /// Until when, while running.
    pub lease_expires_at: Option<Timestamp>,
    /// The fencing token of the last claim; 0 before the first.
    pub token: i64,
    /// What its worker reported last.
    pub progress: Option<JsonText>,
    /// What it came to.
    pub result: Option<JsonText>,
    /// The last thing that went wrong.
    pub last_error: Option<String>,
    /// The caller's trace context.
    pub trace_context: Option<String>,
    /// The execution of which it is a node, if it is one.
    pub execution: Option<ExecutionId>,
    /// When it was enqueued.
    pub created_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

/// A job to enqueue.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// The queue to put it in, which is made with ordinary settings if there is none.
    pub queue: String,
    /// What sort of work it is.
    pub kind: String,
    /// What to work on.
    pub payload: JsonText,
    /// Higher goes first.
    pub priority: i16,
    /// When it may run at the earliest.
    pub start: JobStart,
    /// Claims that count before it is given up; none is the queue's.
    pub max_attempts: Option<u32>,
    /// The wait between tries; none is the queue's.
    pub backoff: Option<Backoff>,
    /// How long an attempt may take; none is the queue's.
    pub timeout: Option<Duration>,
    /// What makes a repeated enqueue the same.
    pub dedup: Option<Dedup>,
    /// The caller's trace context.
    pub trace_context: Option<String>,
}

/// When a job may run at the earliest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JobStart {
    /// At once.
    #[default]
    Now,
    /// Not before this moment.
    At(Timestamp),
    /// Not before so long from now, by the store's clock.
    In(Duration),
}

/// What makes a repeated enqueue the same, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dedup {
    /// The key, unique in its queue.
    pub key: String,
    /// How long it holds from the enqueue on, whatever becomes of the job; none is until the job has ended.
    pub window: Option<Duration>,
}

impl NewJob {
    /// A job with ordinary options.
    pub fn new(queue: impl Into<String>, kind: impl Into<String>, payload: JsonText) -> Self {
        Self {
            queue: queue.into(),
            kind: kind.into(),
            payload,
            priority: 0,
            start: JobStart::Now,
            max_attempts: None,
            backoff: None,
            timeout: None,
            dedup: None,
            trace_context: None,
        }
    }
}

/// A job in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnqueuedJob {
    /// Its id.
    pub id: JobId,
    /// Whether it was there before: its key is held by this job.
    pub existing: bool,
}

/// Jobs to claim.
#[derive(Clone, Debug)]
pub struct JobClaim {
    /// From which queue.
    pub queue: String,
    /// Who claims, a name that no other worker has.
    pub worker: String,
    /// How many at most.
    pub max: u32,
    /// How long the leases last; none is the queue's.
    pub lease: Option<Duration>,
}

/// What a claim brought.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobsClaimed {
    /// The jobs, first in line first.
    pub jobs: Vec<ClaimedJob>,
    /// Whether a limit, of the queue or of all, ended the claim: more may be waiting.
    pub at_limit: bool,
    /// If fewer than asked were claimed: how long until the next waiting job of the queue becomes due, if any waits.
    pub next_due_in: Option<Duration>,
}

/// A job with its lease.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimedJob {
    /// Its id.
    pub id: JobId,
    /// The fencing token: higher than that of every earlier claim of the job.
    pub token: i64,
    /// What sort of work it is.
    pub kind: String,
    /// What to work on.
    pub payload: JsonText,
    /// Higher goes first.
    pub priority: i16,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// How often and when it is tried again.
    pub retry: JobRetry,
    /// How long this attempt may take.
    pub timeout: Option<Duration>,
    /// What an earlier attempt reported last.
    pub progress: Option<JsonText>,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// The caller's trace context.
    pub trace_context: Option<String>,
    /// When it was enqueued.
    pub created_at: Timestamp,
    /// How long the lease lasts from the claim on.
    pub lease: Duration,
    /// Until when by the store's clock, unless renewed.
    pub lease_expires_at: Timestamp,
}

/// A claim of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobRef {
    /// The job.
    pub job: JobId,
    /// The token of the claim.
    pub token: i64,
}

impl ClaimedJob {
    /// What its worker shows to renew or finish it.
    pub fn claim(&self) -> JobRef {
        JobRef {
            job: self.id,
            token: self.token,
        }
    }
}

/// What a worker did with a job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobFinish {
    /// Which claim.
    pub claim: JobRef,
    /// How it ended.
    pub end: JobEnd,
}

/// How a claim ended.
#[derive(Clone, Debug, PartialEq)]
pub enum JobEnd {
    /// The work is done.
    Completed {
        /// What it came to.
        result: Option<JsonText>,
    },
    /// The work failed.
    Failed {
        /// What went wrong.
        error: String,
        /// Whether to try again.
        again: Again,
    },
    /// Not now: again after so long, and this was no attempt.
    Snoozed(Duration),
    /// Not started: again at once, and this was no attempt.
    GivenBack,
}

/// Whether a failed job is tried again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Again {
    /// As its retry policy says.
    #[default]
    Policy,
    /// After so long, unless its attempts are used up.
    After(Duration),
    /// Never.
    Never,
}

/// What became of a finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobFinished {
    /// It is completed.
    Completed,
    /// It is failed for good.
    Failed,
    /// It is queued again, not before this.
    Queued {
        /// When it may run.
        run_at: Timestamp,
    },
    /// The lease was lost, or never held: nothing was changed, and whatever the worker did must not count.
    LeaseLost,
    /// The job is a node of a graph, and nothing was changed: [`Store::node_finish`] ends such a claim.
    OfGraph,
}

/// A job whose lease had run out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpiredJob {
    /// The claim that ended.
    pub claim: JobRef,
    /// The queue it is in.
    pub queue: String,
    /// Who had it.
    pub worker: String,
    /// Where it is now: queued, or failed where its attempts are used up.
    pub status: JobStatus,
}

/// What became of a cancellation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobCancelled {
    /// It was queued and is failed now.
    Cancelled,
    /// A worker has it; it is left alone.
    Running,
    /// It had ended.
    Finished,
    /// It is a node of a graph and left alone: its request can be cancelled.
    OfGraph,
    /// There is no such job.
    NotFound,
}

/// Which jobs to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// Of this queue.
    pub queue: Option<String>,
    /// In this status.
    pub status: Option<JobStatus>,
}

/// Which ended jobs may go.
#[derive(Clone, Copy, Debug, Default)]
pub struct JobPrune {
    /// Completed ones that ended before this; none keeps them.
    pub completed_before: Option<Timestamp>,
    /// Failed ones that ended before this; none keeps them.
    pub failed_before: Option<Timestamp>,
    /// How many at most in this call.
    pub limit: u32,
}

/// What went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobsPruned {
    /// Jobs.
    pub jobs: u64,
    /// Deduplication keys whose window had passed.
    pub keys: u64,
}

/// Ends claims of any kind: those of nodes of graphs by [`Store::node_finish`], the others by [`Store::job_finish`]. Answers are in the
/// order asked.
///
/// # Errors
/// As the two. If the second fails, what the first ended stays ended; asking again brings the rest to its end.
pub async fn finish(
    store: &dyn Store,
    worker: &str,
    finishes: &[JobFinish],
) -> Result<Vec<JobFinished>> {
    let mut answers = store.job_finish(worker, finishes).await?;
    let nodes: Vec<usize> = (0..answers.len())
        .filter(|&at| answers[at] == JobFinished::OfGraph)
        .collect();
    if nodes.is_empty() {
        return Ok(answers);
    }
    let asked: Vec<JobFinish> = nodes.iter().map(|&at| finishes[at].clone()).collect();
    let finished = store.node_finish(worker, &asked).await?;
    for (at, answer) in nodes.into_iter().zip(finished.jobs) {
        answers[at] = answer;
    }
    Ok(answers)
}
