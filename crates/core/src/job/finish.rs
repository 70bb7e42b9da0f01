//! How a worker ends a claim, and the outcome for the job.

use super::JobRef;
use crate::{JsonText, Timestamp};
use std::time::Duration;

/// A worker's report on one claim.
#[derive(Clone, Debug, PartialEq)]
pub struct JobFinish {
    /// The claim.
    pub claim: JobRef,
    /// How it ended.
    pub end: JobEnd,
}

/// How a worker ended a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum JobEnd {
    /// The job succeeded.
    Completed {
        /// The result of the job.
        result: Option<JsonText>,
    },
    /// The job failed.
    Failed {
        /// The error.
        error: String,
        /// Whether and when to retry.
        retry_mode: RetryMode,
    },
    /// Postponed by this long; the claim does not count as an attempt.
    Snoozed(Duration),
    /// Returned to the queue unstarted; due at once, and the claim does not count as an attempt.
    Returned,
}

impl JobEnd {
    /// Returns whether the claim does not count as an attempt. Such an end does not change the state of a graph.
    pub fn refunds_attempt(&self) -> bool {
        match self {
            Self::Snoozed(_) | Self::Returned => true,
            Self::Completed { .. } | Self::Failed { .. } => false,
        }
    }
}

/// Whether and when a failed job is retried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RetryMode {
    /// By the job's retry policy.
    #[default]
    Policy,
    /// After this long, unless its attempts are exhausted.
    After(Duration),
    /// Not at all.
    Never,
}

/// Outcome of ending a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobFinished {
    /// The job is completed.
    Completed,
    /// The job failed permanently.
    Failed,
    /// The job is queued again.
    Queued {
        /// The earliest time it may run.
        run_at: Timestamp,
    },
    /// The worker does not hold the lease. Nothing changed; the worker must discard its result.
    LeaseLost,
    /// The store failed on this claim but ended others of the call. The claim is still held: finish it again. If the first try was committed after all,
    /// the second returns `LeaseLost`.
    NotWritten,
}
