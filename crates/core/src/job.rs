//! The life of a job as one table: which event leads from which status to which, and what counts as an attempt. Nothing else decides it.
//! Below it, what a worker sees of a job: claims and finishes.

mod claim;
mod finish;

pub use claim::{ClaimedJob, JobClaim, JobRef, JobsClaimed};
pub use finish::{Again, JobEnd, JobFinish, JobFinished};

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

/// Where a job is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobStatus {
    /// Waits for a worker, or for its time.
    Queued,
    /// A worker has it, under a lease.
    Running,
    /// Done.
    Completed,
    /// Given up: its attempts are used up, its worker said so, or it was cancelled.
    Failed,
}

/// What can happen to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JobEvent {
    /// A worker takes it.
    Claim,
    /// Its worker is done with it.
    Complete,
    /// Its worker failed and it may be tried again.
    Retry,
    /// Its worker failed and it is not tried again.
    Fail,
    /// Its worker wants it later; no attempt is counted.
    Snooze,
    /// Its worker did not start it; no attempt is counted.
    GiveBack,
    /// Its lease ran out.
    Expire,
    /// Its lease ran out on its last attempt.
    Exhaust,
    /// Someone cancels it before a worker has it.
    Cancel,
}

/// An event that the status does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a {status} job does not allow {event:?}")]
pub struct IllegalJobTransition {
    /// Where the job was.
    pub status: JobStatus,
    /// What was asked of it.
    pub event: JobEvent,
}

/// A name that is no status's.
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
        Self::GiveBack,
        Self::Expire,
        Self::Exhaust,
        Self::Cancel,
    ];

    /// Whether only the worker that holds the lease can make it happen.
    pub const fn is_owners(self) -> bool {
        match self {
            Self::Complete | Self::Retry | Self::Fail | Self::Snooze | Self::GiveBack => true,
            Self::Claim | Self::Expire | Self::Exhaust | Self::Cancel => false,
        }
    }

    /// Whether the claim that it ends does not count as an attempt.
    pub const fn gives_attempt_back(self) -> bool {
        match self {
            Self::Snooze | Self::GiveBack => true,
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

    /// The status after `event`, or why there is none.
    pub const fn after(self, event: JobEvent) -> Result<JobStatus, IllegalJobTransition> {
        use JobEvent as E;
        use JobStatus as S;
        match (self, event) {
            (S::Queued, E::Claim) => Ok(S::Running),
            (S::Queued, E::Cancel) => Ok(S::Failed),
            (S::Running, E::Complete) => Ok(S::Completed),
            (S::Running, E::Fail | E::Exhaust) => Ok(S::Failed),
            (S::Running, E::Retry | E::Snooze | E::GiveBack | E::Expire) => Ok(S::Queued),
            (
                S::Queued,
                E::Complete | E::Retry | E::Fail | E::Snooze | E::GiveBack | E::Expire | E::Exhaust,
            )
            | (S::Running, E::Claim | E::Cancel)
            | (
                S::Completed | S::Failed,
                E::Claim
                | E::Complete
                | E::Retry
                | E::Fail
                | E::Snooze
                | E::GiveBack
                | E::Expire
                | E::Exhaust
                | E::Cancel,
            ) => Err(IllegalJobTransition {
                status: self,
                event,
            }),
        }
    }

    /// Whether nothing can happen to it any more.
    pub const fn is_finished(self) -> bool {
        match self {
            Self::Completed | Self::Failed => true,
            Self::Queued | Self::Running => false,
        }
    }

    /// The status's name, as stored and shown.
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

/// How often a job is tried, and how long it waits between tries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JobRetry {
    /// Claims that count before the job is given up.
    pub max_attempts: u32,
    /// The wait between tries.
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
    /// What becomes of a job whose attempt number `attempt` failed: the wait before the next, or none if that was the last.
    /// `unit` is a number from 0 to 1 for the jitter.
    pub fn after_failure(&self, attempt: u32, unit: f64) -> Option<Duration> {
        (attempt < self.max_attempts).then(|| self.backoff.delay(attempt, unit))
    }
}

/// The longest wait of a job before it may run, or run again.
pub const WAIT_MAX: Duration = Duration::from_secs(JOB_WAIT_MAX_DAYS as u64 * 24 * 60 * 60);

/// The wait to use for a wished one.
pub fn bounded_wait(wait: Duration) -> Duration {
    wait.min(WAIT_MAX)
}

/// A number from 0 to 1 that differs from claim to claim: the jitter of a job's next wait, the same wherever it is computed.
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
