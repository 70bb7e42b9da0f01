//! Jobs: parameters and outcomes.

mod store;

pub use store::{JobObserver, JobStore};

use crate::error::{Error, ErrorKind, Result};
use crate::graph::EndedExecution;
use crate::record::{Column, RecordRow, record};
use leasehold_core::job::{JobFinished, JobId, JobRef, JobRetry, JobStatus};
use leasehold_core::payload::JsonText;
use leasehold_core::retry::Backoff;
use leasehold_core::{ExecutionId, Named, Timestamp};
use std::time::Duration;

record! {
    /// A stored job.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Job {
        /// Its id.
        pub id: JobId = "id",
        /// The queue it is in.
        pub queue: String = "queue",
        /// The kind of work; handlers are registered by kind.
        pub kind: String = "kind",
        /// The group it takes turns with.
        pub group: Option<String> = "group_name",
        /// Its status.
        pub status: Named<JobStatus> = "status",
        /// Higher is served first.
        pub priority: i16 = "priority",
        /// The input of the job.
        pub payload: JsonText = "payload",
        /// The earliest time it may run.
        pub run_at: Timestamp = "run_at",
        /// Attempts, including the current one.
        pub attempts: u32 = "attempts",
        /// The retry policy: its own, else its queue's.
        pub retry: JobRetry => retry,
        /// Timeout of one attempt: its own, else its queue's.
        pub timeout: Option<Duration> = "timeout_us",
        /// The deduplication key.
        pub dedup_key: Option<String> = "dedup_key",
        /// The worker that holds it, while running.
        pub claimed_by: Option<String> = "claimed_by",
        /// When that worker claimed it, while running.
        pub claimed_at: Option<Timestamp> = "claimed_at",
        /// When the lease expires, while running.
        pub lease_expires_at: Option<Timestamp> = "lease_expires_at",
        /// The fencing token of the last claim; 0 before the first.
        pub token: i64 = "token",
        /// The last progress that its worker reported.
        pub progress: Option<JsonText> = "progress",
        /// Its result.
        pub result: Option<JsonText> = "result",
        /// The last error.
        pub last_error: Option<String> = "last_error",
        /// The caller's trace context.
        pub trace_context: Option<String> = "trace_context",
        /// The execution whose node it runs, if any.
        pub execution: Option<ExecutionId> = "execution_id",
        /// When it was enqueued.
        pub created_at: Timestamp = "created_at",
        /// When it ended.
        pub finished_at: Option<Timestamp> = "finished_at",
    }
}

/// Reads a retry policy from its five columns; NULL takes the default.
pub(crate) fn retry<R: RecordRow>(row: &R) -> std::result::Result<JobRetry, R::Error> {
    let default = JobRetry::default();
    let max_attempts = u32::read_or_null(row, "max_attempts")?;
    let backoff = match Duration::read_or_null(row, "backoff_base_us")? {
        None => default.backoff,
        Some(base) => Backoff {
            base,
            factor: Column::read(row, "backoff_factor")?,
            max: Column::read(row, "backoff_max_us")?,
            jitter: Column::read(row, "backoff_jitter")?,
        },
    };
    Ok(JobRetry {
        max_attempts: max_attempts.unwrap_or(default.max_attempts),
        backoff,
    })
}

/// A job to enqueue.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// The queue, which is created with default settings if it does not exist.
    pub queue: String,
    /// The kind of work; handlers are registered by kind.
    pub kind: String,
    /// Whose turns its claims use: in a queue, groups that have a job due take turns, one job each. Jobs without a group share one.
    pub group: Option<String>,
    /// The input of the job.
    pub payload: JsonText,
    /// Higher is served first, within the group.
    pub priority: i16,
    /// When it may run at the earliest.
    pub start: JobStart,
    /// Attempts before it fails permanently; none takes the queue's.
    pub max_attempts: Option<u32>,
    /// The wait between attempts; none takes the queue's.
    pub backoff: Option<Backoff>,
    /// Timeout of one attempt; none takes the queue's.
    pub timeout: Option<Duration>,
    /// The deduplication key and its window.
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
    /// At this time or later.
    At(Timestamp),
    /// This long from now or later, by the store's clock.
    In(Duration),
}

/// A deduplication key and its window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dedup {
    /// The key, unique in its queue.
    pub key: String,
    /// How long it holds from the enqueue on, whether or not the job has ended; none is until the job has ended.
    pub window: Option<Duration>,
}

impl NewJob {
    /// Creates a job with default options.
    pub fn new(queue: impl Into<String>, kind: impl Into<String>, payload: JsonText) -> Self {
        Self {
            queue: queue.into(),
            kind: kind.into(),
            group: None,
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

/// The result of enqueueing one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnqueuedJob {
    /// Its id.
    pub id: JobId,
    /// Whether an earlier job with the same deduplication key was returned instead.
    pub existing: bool,
}

/// Outcome of a finish call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobsFinished {
    /// Outcome of each claim, in the order of the call.
    pub jobs: Vec<JobFinished>,
    /// The executions that ended because of these claims, in any order.
    pub ended: Vec<EndedExecution>,
    /// The error of the first claim with `NotWritten`, if any.
    pub failure: Option<String>,
}

impl JobsFinished {
    /// Adds the failure that left some claims `NotWritten`.
    ///
    /// # Errors
    /// The failure itself, if the call ended no claim. A conflict with another transaction concerns single claims, so it is no failure of the call.
    pub fn with_failure(mut self, failure: Option<Error>) -> Result<Self> {
        let Some(error) = failure else {
            return Ok(self);
        };
        let ended = |job: &JobFinished| match job {
            JobFinished::Completed | JobFinished::Failed | JobFinished::Queued { .. } => true,
            JobFinished::LeaseLost | JobFinished::NotWritten => false,
        };
        let is_of_claim = matches!(error.kind, ErrorKind::Contended(_));
        if !is_of_claim && !self.jobs.iter().any(ended) {
            return Err(error);
        }
        self.failure = Some(error.to_string());
        Ok(self)
    }
}

/// A job whose lease had expired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpiredJob {
    /// The claim that ended.
    pub claim: JobRef,
    /// The queue it is in.
    pub queue: String,
    /// The worker that held it.
    pub worker: String,
    /// The new status: queued, or failed if its attempts are exhausted.
    pub status: JobStatus,
}

/// Outcome of a cancellation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobCancelled {
    /// It was queued and has now failed.
    Cancelled,
    /// A worker holds it; it is not changed.
    Running,
    /// It had already ended.
    Finished,
    /// It is a node of a graph and not changed; cancel its request instead.
    OfGraph,
    /// No such job exists.
    NotFound,
}

/// Filter of a list of jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// Only of this queue.
    pub queue: Option<String>,
    /// Only in this status.
    pub status: Option<JobStatus>,
}

/// Which ended jobs to delete.
#[derive(Clone, Copy, Debug, Default)]
pub struct JobPrune {
    /// Completed jobs that ended before this; none keeps them.
    pub completed_before: Option<Timestamp>,
    /// Failed jobs that ended before this; none keeps them.
    pub failed_before: Option<Timestamp>,
    /// The maximum number of jobs in this call.
    pub limit: u32,
}

/// What was deleted.
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

    fn failure() -> Option<Error> {
        let lost = ErrorKind::Unavailable("lost".to_owned());
        Some(Error::new("job_finish", lost))
    }

    #[test]
    fn failure_of_some_claims_does_not_hide_the_outcome_of_others() {
        let of = |jobs: &[JobFinished]| JobsFinished {
            jobs: jobs.to_vec(),
            ..JobsFinished::default()
        };
        let (done, lost) = (JobFinished::Completed, JobFinished::LeaseLost);
        let unwritten = JobFinished::NotWritten;
        let some = of(&[done, unwritten, lost]).with_failure(failure());
        let some = some.expect("one claim has ended");
        assert_eq!(some.jobs, [done, unwritten, lost]);
        let text = "job_finish: the store is unavailable: lost";
        assert_eq!(some.failure.as_deref(), Some(text));
        let none = of(&[lost, unwritten]).with_failure(failure());
        assert_eq!(none.expect_err("no claim has ended").to_string(), text);
        let locked = ErrorKind::Contended("locked".to_owned());
        let locked = Some(Error::new("job_finish", locked));
        let one = of(&[unwritten]).with_failure(locked);
        let one = one.expect("a locked row concerns one claim");
        assert_eq!(one.jobs, [unwritten]);
        assert_eq!(
            of(&[lost]).with_failure(None).expect("nothing failed"),
            of(&[lost])
        );
    }
}
