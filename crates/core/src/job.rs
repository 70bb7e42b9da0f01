//! The state machine of a job: which event leads from which status to which, and what counts as an attempt. No other code decides it.
//! The submodules hold what a worker exchanges with the queue: claims and finishes.

mod claim;
mod finish;
mod turns;

pub use claim::{ClaimedJob, JobClaim, JobRef, JobsClaimed, JobsRenewed};
pub use finish::{JobEnd, JobFinish, JobFinished, RetryMode};
pub use turns::{NextTurn, Places, Turns};

use crate::limits::JOB_WAIT_MAX_DAYS;
use crate::retry::Backoff;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use thiserror::Error;

/// One row of the WorkQueue. Ids rise in the order of enqueueing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(pub i64);

impl std::fmt::Display for JobId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::str::FromStr for JobId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// The status of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobStatus {
    /// Waits for a worker, or for its `run_at`.
    Queued,
    /// A worker holds it under a lease.
    Running,
    /// The worker reported success.
    Completed,
    /// Its attempts are exhausted, its worker failed it permanently, or it was cancelled.
    Failed,
}

/// An event in the life of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JobEvent {
    /// A worker claims it.
    Claim,
    /// Its worker completed it.
    Complete,
    /// Its worker failed, and it is retried.
    Retry,
    /// Its worker failed, and it is not retried.
    Fail,
    /// Its worker postponed it; no attempt is counted.
    Snooze,
    /// Its worker returned it unstarted; no attempt is counted.
    Return,
    /// Its lease expired.
    Expire,
    /// Its lease expired on its last attempt.
    Exhaust,
    /// A caller cancels it while it is queued.
    Cancel,
}

/// An event that the status does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a {status} job does not allow {event:?}")]
pub struct IllegalJobTransition {
    /// The status of the job.
    pub status: JobStatus,
    /// The rejected event.
    pub event: JobEvent,
}

/// A name that no status has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown job status `{0}`")]
pub struct UnknownJobStatus(pub String);

impl JobEvent {
    /// Every event.
    pub const ALL: [JobEvent; 9] = [
        Self::Claim,
        Self::Complete,
        Self::Retry,
        Self::Fail,
        Self::Snooze,
        Self::Return,
        Self::Expire,
        Self::Exhaust,
        Self::Cancel,
    ];

    /// Returns whether only the worker that holds the lease can cause the event.
    pub const fn requires_lease(self) -> bool {
        match self {
            Self::Complete | Self::Retry | Self::Fail | Self::Snooze | Self::Return => true,
            Self::Claim | Self::Expire | Self::Exhaust | Self::Cancel => false,
        }
    }

    /// Returns whether the claim that the event ends does not count as an attempt.
    pub const fn refunds_attempt(self) -> bool {
        match self {
            Self::Snooze | Self::Return => true,
            Self::Claim
            | Self::Complete
            | Self::Retry
            | Self::Fail
            | Self::Expire
            | Self::Exhaust
            | Self::Cancel => false,
        }
    }
}

impl JobStatus {
    /// Every status, in the order of a job's life.
    pub const ALL: [JobStatus; 4] = [Self::Queued, Self::Running, Self::Completed, Self::Failed];

    /// Returns the status after `event`, or an error if the status does not allow it.
    pub const fn after(self, event: JobEvent) -> Result<JobStatus, IllegalJobTransition> {
        use JobEvent as E;
        use JobStatus as S;
        match (self, event) {
            (S::Queued, E::Claim) => Ok(S::Running),
            (S::Queued, E::Cancel) => Ok(S::Failed),
            (S::Running, E::Complete) => Ok(S::Completed),
            (S::Running, E::Fail | E::Exhaust) => Ok(S::Failed),
            (S::Running, E::Retry | E::Snooze | E::Return | E::Expire) => Ok(S::Queued),
            (
                S::Queued,
                E::Complete | E::Retry | E::Fail | E::Snooze | E::Return | E::Expire | E::Exhaust,
            )
            | (S::Running, E::Claim | E::Cancel)
            | (
                S::Completed | S::Failed,
                E::Claim
                | E::Complete
                | E::Retry
                | E::Fail
                | E::Snooze
                | E::Return
                | E::Expire
                | E::Exhaust
                | E::Cancel,
            ) => Err(IllegalJobTransition {
                status: self,
                event,
            }),
        }
    }

    /// Returns whether the status is final.
    pub const fn is_finished(self) -> bool {
        match self {
            Self::Completed | Self::Failed => true,
            Self::Queued | Self::Running => false,
        }
    }

    /// Returns the name, as stored and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

impl std::str::FromStr for JobStatus {
    type Err = UnknownJobStatus;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or_else(|| UnknownJobStatus(text.to_owned()))
    }
}

impl std::fmt::Display for JobStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The retry policy of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JobRetry {
    /// Attempts before the job fails permanently.
    pub max_attempts: u32,
    /// The wait between attempts.
    pub backoff: Backoff,
}

impl Default for JobRetry {
    fn default() -> Self {
        Self {
            max_attempts: 25,
            backoff: Backoff::default(),
        }
    }
}

impl JobRetry {
    /// Returns the wait after failed attempt number `attempt`, or none if it was the last. `unit` is a random number from 0 to 1 for the jitter.
    pub fn after_failure(&self, attempt: u32, unit: f64) -> Option<Duration> {
        (attempt < self.max_attempts).then(|| self.backoff.delay(attempt, unit))
    }
}

/// The longest wait of a job before its first or next attempt.
pub const WAIT_MAX: Duration = Duration::from_secs(JOB_WAIT_MAX_DAYS as u64 * 24 * 60 * 60);

/// Caps a requested wait at [`WAIT_MAX`].
pub fn bounded_wait(wait: Duration) -> Duration {
    wait.min(WAIT_MAX)
}

/// Derives the jitter of a job's next wait from its claim: a number from 0 to 1, the same wherever it is computed.
pub fn jitter(job: JobId, token: i64) -> f64 {
    // The finalizer of splitmix64: neighbouring inputs give unrelated outputs.
    let mut mixed = (job.0 as u64)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(token as u64);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    (mixed >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests;
