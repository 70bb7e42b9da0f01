//! Jobs: parameters and outcomes.

mod store;

pub use store::{JobObserver, JobStore};

use crate::error::{Error, Result};
use crate::graph::EndedExecution;
use crate::record::{Column, RecordRow, record};
use leasehold_core::job::{JobFinished, JobId, JobRef, JobRetry, JobStatus};
use leasehold_core::payload::JsonText;
use leasehold_core::retry::Backoff;
use leasehold_core::{ExecutionId, Timestamp};
use std::time::Duration;

record! {
    /// A job as it is kept.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Job {
        /// Its id.
        pub id: JobId = "id",
        /// The queue it is in.
        pub queue: String = "queue",
        /// What sort of work it is; handlers are found by it.
        pub kind: String = "kind",
        /// Where it is.
        pub status: JobStatus = "status",
        /// Higher goes first.
        pub priority: i16 = "priority",
        /// What to work on.
        pub payload: JsonText = "payload",
        /// Not before this.
        pub run_at: Timestamp = "run_at",
        /// Claims that count, the current one included.
        pub attempts: u32 = "attempts",
        /// How often and when it is tried again: its own wish, else its queue's.
        pub retry: JobRetry => retry,
        /// How long an attempt may take: its own wish, else its queue's.
        pub timeout: Option<Duration> = "timeout_us",
        /// What makes a repeated enqueue the same, as long as it holds.
        pub dedup_key: Option<String> = "dedup_key",
        /// The worker that has it, while running.
        pub claimed_by: Option<String> = "claimed_by",
        /// When that worker took it, while running.
        pub claimed_at: Option<Timestamp> = "claimed_at",
        /// Until when, while running.
        pub lease_expires_at: Option<Timestamp> = "lease_expires_at",
        /// The fencing token of the last claim; 0 before the first.
        pub token: i64 = "token",
        /// What its worker reported last.
        pub progress: Option<JsonText> = "progress",
        /// What it came to.
        pub result: Option<JsonText> = "result",
        /// The last thing that went wrong.
        pub last_error: Option<String> = "last_error",
        /// The caller's trace context.
        pub trace_context: Option<String> = "trace_context",
        /// The execution of which it is a node, if it is one.
        pub execution: Option<ExecutionId> = "execution_id",
        /// When it was enqueued.
        pub created_at: Timestamp = "created_at",
        /// When it ended.
        pub finished_at: Option<Timestamp> = "finished_at",
    }
}

/// Reads a retry policy from its five columns; what is NULL is as ordinary.
pub(crate) fn retry<R: RecordRow>(row: &R) -> std::result::Result<JobRetry, R::Error> {
    let ordinary = JobRetry::default();
    let max_attempts = u32::read_or_null(row, "max_attempts")?;
    let backoff = match Duration::read_or_null(row, "backoff_base_us")? {
        None => ordinary.backoff,
        Some(base) => Backoff {
            base,
            factor: Column::read(row, "backoff_factor")?,
            max: Column::read(row, "backoff_max_us")?,
            jitter: Column::read(row, "backoff_jitter")?,
        },
    };
    Ok(JobRetry {
        max_attempts: max_attempts.unwrap_or(ordinary.max_attempts),
        backoff,
    })
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

/// What became of the claims of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobsFinished {
    /// What became of each claim, in the order asked.
    pub jobs: Vec<JobFinished>,
    /// The executions that ended with nodes among them, in any order.
    pub ended: Vec<EndedExecution>,
    /// Why the first claim that is answered `NotWritten` was not written; none if there is no such claim.
    pub failure: Option<String>,
}

impl JobsFinished {
    /// The outcome of a call in which `failure` kept some claims from their end, which are answered `NotWritten`.
    ///
    /// # Errors
    /// The failure itself if the call ended no claim.
    pub fn with_failure(mut self, failure: Option<Error>) -> Result<Self> {
        let Some(error) = failure else {
            return Ok(self);
        };
        let ended = |job: &JobFinished| match job {
            JobFinished::Completed | JobFinished::Failed | JobFinished::Queued { .. } => true,
            JobFinished::LeaseLost | JobFinished::NotWritten => false,
        };
        if !self.jobs.iter().any(ended) {
            return Err(error);
        }
        self.failure = Some(error.to_string());
        Ok(self)
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn failure() -> Option<Error> {
        let locked = ErrorKind::Contended("locked".to_owned());
        Some(Error::new("job_finish", locked))
    }

    #[test]
    fn failure_of_some_claims_does_not_hide_the_end_of_others() {
        let of = |jobs: &[JobFinished]| JobsFinished {
            jobs: jobs.to_vec(),
            ..JobsFinished::default()
        };
        let (done, lost) = (JobFinished::Completed, JobFinished::LeaseLost);
        let unwritten = JobFinished::NotWritten;
        let some = of(&[done, unwritten, lost]).with_failure(failure());
        let some = some.expect("one claim has ended");
        assert_eq!(some.jobs, [done, unwritten, lost]);
        let says = "job_finish: the store asks to try again: locked";
        assert_eq!(some.failure.as_deref(), Some(says));
        let none = of(&[lost, unwritten]).with_failure(failure());
        assert_eq!(none.expect_err("no claim has ended").to_string(), says);
        assert_eq!(
            of(&[lost]).with_failure(None).expect("nothing failed"),
            of(&[lost])
        );
    }
}
