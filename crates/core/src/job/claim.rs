//! A worker's claim of jobs, and its result: jobs, each under a lease with a fencing token.

use super::{JobId, JobRetry};
use crate::graph::NodeReference;
use crate::{JsonText, Timestamp};
use std::time::Duration;

/// Jobs to claim.
#[derive(Clone, Debug)]
pub struct JobClaim {
    /// The queue to claim from.
    pub queue: String,
    /// The name of the worker; unique among workers.
    pub worker: String,
    /// The maximum number. Fewer are claimed if their payloads do not fit into [`CLAIM_MAX_BYTES`](crate::limits::CLAIM_MAX_BYTES).
    pub max: u32,
    /// The lease duration; none takes the queue's.
    pub lease: Option<Duration>,
}

/// The result of a claim.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobsClaimed {
    /// The jobs, in claim order.
    pub jobs: Vec<ClaimedJob>,
    /// Whether the limit of the queue or of all queues ended the claim; more jobs may be due.
    pub at_limit: bool,
    /// Time until the next waiting job of the queue is due; set only if fewer than `max` were claimed and a job waits.
    pub next_due_in: Option<Duration>,
}

/// Outcome of renewing leases. A lease in neither list is lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobsRenewed {
    /// The jobs whose lease was renewed.
    pub renewed: Vec<JobId>,
    /// The jobs whose lease is held but was not renewed, because another transaction has locked it. It ends as before, so renew it again soon.
    pub busy: Vec<JobId>,
}

/// A claimed job with its lease.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimedJob {
    /// Its id.
    pub id: JobId,
    /// The fencing token: higher than that of every earlier claim of the job.
    pub token: i64,
    /// The kind of work; handlers are registered by kind.
    pub kind: String,
    /// The group it takes turns with.
    pub group: Option<String>,
    /// The input of the job.
    pub payload: JsonText,
    /// Higher is served first.
    pub priority: i16,
    /// The number of this attempt, from 1.
    pub attempt: u32,
    /// The retry policy.
    pub retry: JobRetry,
    /// Timeout of this attempt.
    pub timeout: Option<Duration>,
    /// The last progress that an earlier attempt reported.
    pub progress: Option<JsonText>,
    /// The last error.
    pub last_error: Option<String>,
    /// The caller's trace context.
    pub trace_context: Option<String>,
    /// When it was enqueued.
    pub created_at: Timestamp,
    /// The lease duration, from the claim on.
    pub lease: Duration,
    /// When the lease expires by the store's clock, unless renewed.
    pub lease_expires_at: Timestamp,
}

/// Identifies one claim of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobRef {
    /// The job.
    pub job: JobId,
    /// The fencing token of the claim.
    pub token: i64,
}

impl ClaimedJob {
    /// Returns the bytes that count towards [`CLAIM_MAX_BYTES`](crate::limits::CLAIM_MAX_BYTES), for a job whose payload is not a reference.
    pub fn bytes(&self) -> usize {
        self.payload.as_str().len() + self.note_bytes()
    }

    /// Returns the same for a job of a graph: what the claim reads and builds for it counts, as its reference says.
    pub fn node_bytes(&self) -> usize {
        let reference = NodeReference::read(&self.payload);
        let built = reference.map_or(0, |reference| reference.bytes);
        built.saturating_add(self.note_bytes())
    }

    fn note_bytes(&self) -> usize {
        let progress = self.progress.as_ref().map_or(0, |json| json.as_str().len());
        let error = self.last_error.as_ref().map_or(0, String::len);
        progress + error
    }

    /// Returns the reference that renews or finishes this claim.
    pub fn claim(&self) -> JobRef {
        JobRef {
            job: self.id,
            token: self.token,
        }
    }
}
