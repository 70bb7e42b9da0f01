//! Graphs that run in the store, node by node: parameters and outcomes, and the job that a node becomes.

use crate::job::{JobStart, NewJob};
use leasehold_core::graph::{GraphState, Work};
use leasehold_core::job::JobRetry;
use leasehold_core::queue::{DELAY_NODES, HTTP_NODES};
use leasehold_core::{ExecutionEnd, ExecutionId, JsonText, Timestamp};
use std::time::Duration;

/// The error of a job whose execution ended without it.
pub const ABANDONED: &str = "the execution has ended";
/// The error of an execution whose timeout has passed.
pub const TIMED_OUT: &str = "the execution timeout has passed";

/// A graph that runs or ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphRun {
    /// The execution.
    pub execution: ExecutionId,
    /// Where its nodes are, and how it ended.
    pub state: GraphState,
    /// What went wrong.
    pub error: Option<String>,
    /// When it was started.
    pub started_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

/// What became of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphStarted {
    /// Its first nodes are in their queues.
    Started,
    /// It was started before.
    AlreadyStarted {
        /// Whether it has ended since.
        ended: bool,
    },
    /// There is no such execution, or it ended before it was started.
    NotFound,
    /// Its version is a binding, which no store can run.
    NotAGraph,
}

/// What became of stopping a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphStopped {
    /// It has ended, and its execution with it.
    Stopped,
    /// It had ended before.
    AlreadyEnded,
    /// There is none.
    NotFound,
}

/// A graph that ended because of the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphSettled {
    /// The execution.
    pub execution: ExecutionId,
    /// How it ended.
    pub end: ExecutionEnd,
    /// What went wrong.
    pub error: Option<String>,
}

/// The job that does a node's work.
pub fn job_of(work: Work, priority: i16) -> NewJob {
    let with = |mut job: NewJob, retry: JobRetry, timeout: Option<Duration>| {
        job.priority = priority;
        job.max_attempts = Some(retry.max_attempts);
        job.backoff = Some(retry.backoff);
        job.timeout = timeout;
        job
    };
    match work {
        Work::Task {
            queue,
            kind,
            payload,
            retry,
            timeout,
        } => with(NewJob::new(queue, kind, payload), retry, timeout),
        Work::Http {
            call,
            retry,
            timeout,
        } => {
            // A call is made of texts and JSON, which is always JSON.
            let payload = JsonText::of(&call).unwrap_or_default();
            with(
                NewJob::new(HTTP_NODES, "http", payload),
                retry,
                Some(timeout),
            )
        }
        Work::Delay(pause) => {
            let job = NewJob::new(DELAY_NODES, "delay", JsonText::default());
            // There is nothing in it that could fail for good.
            let retry = JobRetry {
                max_attempts: leasehold_core::limits::MAX_ATTEMPTS_MAX,
                ..JobRetry::default()
            };
            let mut job = with(job, retry, None);
            job.start = JobStart::In(pause);
            job
        }
    }
}
