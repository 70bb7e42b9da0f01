//! What a worker asks for, and what a claim gives it: jobs, each under a lease with a fencing token.

use super::{JobId, JobRetry};
use crate::{JsonText, Timestamp};
use std::time::Duration;

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
