//! How a worker ends a claim, and the status that the job has then.

use super::JobRef;
use crate::{JsonText, Timestamp};
use std::time::Duration;

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

impl JobEnd {
    /// Whether the job goes back into its queue and the claim was no attempt: that changes nothing of a graph.
    pub fn is_no_attempt(&self) -> bool {
        match self {
            Self::Snoozed(_) | Self::GivenBack => true,
            Self::Completed { .. } | Self::Failed { .. } => false,
        }
    }
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

/// The outcome of ending a claim.
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
    /// The store failed while it ended this claim, and ended others of the call. The claim is still held: end it again. If its end was written after all,
    /// the answer to that is `LeaseLost`.
    NotWritten,
}
