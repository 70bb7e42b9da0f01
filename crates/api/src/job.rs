//! Jobs: enqueueing, claiming, renewing and finishing them.

use crate::queue::Backoff;
use leasehold_core::{ExecutionId, JobId, JobStatus, JsonText, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A job to enqueue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewJob {
    /// What sort of work it is; workers find their handler by it.
    #[schema(
        min_length = 1,
        max_length = 128,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*[^\u0000-\u001f\u007f-\u009f\s][^\u0000-\u001f\u007f-\u009f]*$",
        example = "welcome"
    )]
    pub kind: String,
    /// What to work on: any JSON.
    #[serde(default)]
    #[schema(value_type = Value)]
    pub payload: JsonText,
    /// Higher goes first.
    #[serde(default)]
    #[schema(minimum = -1000, maximum = 1000)]
    pub priority: i16,
    /// Not before this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub run_at: Option<Timestamp>,
    /// Not before so long from now. Not together with `run_at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 31_622_400_000u64)]
    pub run_in_ms: Option<u64>,
    /// How often it is tried; the queue says it otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 32_767)]
    pub max_attempts: Option<u32>,
    /// The wait between tries; the queue says it otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
    /// How long an attempt may take; the queue says it otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 31_622_400_000u64)]
    pub timeout_ms: Option<u64>,
    /// What makes a repeated enqueue the same, in its queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*[^\u0000-\u001f\u007f-\u009f\s][^\u0000-\u001f\u007f-\u009f]*$"
    )]
    pub dedup_key: Option<String>,
    /// How long that key holds, whatever becomes of the job; without it, until the job has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 31_622_400_000u64)]
    pub dedup_window_ms: Option<u64>,
}

impl NewJob {
    /// A job with ordinary options.
    pub fn new(kind: impl Into<String>, payload: JsonText) -> Self {
        Self {
            kind: kind.into(),
            payload,
            priority: 0,
            run_at: None,
            run_in_ms: None,
            max_attempts: None,
            backoff: None,
            timeout_ms: None,
            dedup_key: None,
            dedup_window_ms: None,
        }
    }
}

/// Jobs to enqueue, all or none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewJobs {
    /// The jobs.
    #[schema(min_items = 1, max_items = 10_000)]
    pub jobs: Vec<NewJob>,
}

/// A job in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EnqueuedJob {
    /// Its id.
    #[schema(value_type = i64)]
    pub id: JobId,
    /// Whether this call put it there; if not, its key was held by this one.
    pub inserted: bool,
}

/// Jobs in their queue, in the order asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EnqueuedJobs {
    /// The jobs.
    pub jobs: Vec<EnqueuedJob>,
}

/// Jobs to claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Who claims: a name that no other worker with the same key has.
    #[schema(
        min_length = 1,
        max_length = 90,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*[^\u0000-\u001f\u007f-\u009f\s][^\u0000-\u001f\u007f-\u009f]*$",
        example = "host-1:4711"
    )]
    pub worker: String,
    /// How many at most.
    #[serde(default = "one")]
    #[schema(minimum = 1, maximum = 1000)]
    pub max: u32,
    /// How long the leases last; the queue says it otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 100, maximum = 86_400_000)]
    pub lease_ms: Option<u64>,
    /// How long to wait for a job if there is none.
    #[serde(default)]
    #[schema(maximum = 60_000)]
    pub wait_ms: u64,
}

fn one() -> u32 {
    1
}

/// What a claim brought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Claimed {
    /// The jobs, first in line first; maybe none.
    pub jobs: Vec<ClaimedJob>,
    /// Whether a limit ended the claim: more may be waiting.
    pub at_limit: bool,
    /// If fewer than asked were claimed: how long until the next waiting job becomes due, if any waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_due_in_ms: Option<u64>,
}

/// A job with its lease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ClaimedJob {
    /// Its id.
    #[schema(value_type = i64)]
    pub id: JobId,
    /// The fencing token: higher than that of every earlier claim of the job.
    pub token: i64,
    /// What sort of work it is.
    pub kind: String,
    /// What to work on.
    #[schema(value_type = Value)]
    pub payload: JsonText,
    /// Higher goes first.
    pub priority: i16,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// How often it is tried.
    pub max_attempts: u32,
    /// The wait between tries.
    pub backoff: Backoff,
    /// How long this attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// What an earlier attempt reported last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub progress: Option<JsonText>,
    /// What went wrong last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// The trace context of whoever enqueued it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_context: Option<String>,
    /// When it was enqueued.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// How long the lease lasts from the claim on.
    pub lease_ms: u64,
    /// Until when by the server's clock, unless renewed.
    #[schema(value_type = String, format = DateTime)]
    pub lease_expires_at: Timestamp,
}

/// A claim of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JobRef {
    /// The job.
    #[schema(value_type = i64, minimum = 1)]
    pub id: JobId,
    /// The token of the claim.
    #[schema(minimum = 1)]
    pub token: i64,
}

/// Leases to extend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Renew {
    /// Who claimed them.
    #[schema(
        min_length = 1,
        max_length = 90,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*[^\u0000-\u001f\u007f-\u009f\s][^\u0000-\u001f\u007f-\u009f]*$"
    )]
    pub worker: String,
    /// The claims.
    #[schema(min_items = 1, max_items = 10_000)]
    pub claims: Vec<JobRef>,
    /// How long the leases last from now on.
    #[schema(minimum = 100, maximum = 86_400_000)]
    pub lease_ms: u64,
}

/// Leases that were extended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Renewed {
    /// The jobs still held. A lease that is not here is lost: stop its work and drop the result.
    #[schema(value_type = Vec<i64>)]
    pub held: Vec<JobId>,
}

/// Claims to end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FinishMany {
    /// Who claimed them.
    #[schema(
        min_length = 1,
        max_length = 90,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*[^\u0000-\u001f\u007f-\u009f\s][^\u0000-\u001f\u007f-\u009f]*$"
    )]
    pub worker: String,
    /// How each ended.
    #[schema(min_items = 1, max_items = 10_000)]
    pub finishes: Vec<Finish>,
}

/// How a claim ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Finish {
    /// The job.
    #[schema(value_type = i64, minimum = 1)]
    pub id: JobId,
    /// The token of the claim.
    #[schema(minimum = 1)]
    pub token: i64,
    /// How it ended.
    pub outcome: Outcome,
    /// What it came to; with `completed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub result: Option<JsonText>,
    /// What went wrong; with `failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 100_000)]
    pub error: Option<String>,
    /// Whether to try again, with `failed`; as its policy says unless `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<bool>,
    /// How long to wait: before the next try with `failed` (its policy says it otherwise), before it is due again with `snoozed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 31_622_400_000u64)]
    pub after_ms: Option<u64>,
}

/// How the work on a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is done.
    Completed,
    /// It failed.
    Failed,
    /// Not now; this was no attempt.
    Snoozed,
    /// It was not started; this was no attempt.
    GivenBack,
}

/// What became of each, in the order asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FinishedMany {
    /// One for each finish.
    pub finished: Vec<Finished>,
}

/// What became of a finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Finished {
    /// The job.
    #[schema(value_type = i64)]
    pub id: JobId,
    /// Where it is now.
    pub state: FinishState,
    /// When it may run again, if it is queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub run_at: Option<Timestamp>,
}

/// Where a job is after a finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishState {
    /// Completed.
    Completed,
    /// Failed for good.
    Failed,
    /// Queued again.
    Queued,
    /// The lease was lost or never held: nothing was changed, and whatever the worker did must not count.
    LeaseLost,
    /// The store failed while it ended this claim, and ended others of the call. The claim is still held: send this finish again.
    NotWritten,
}

/// What a worker says of its progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// Who claimed it.
    #[schema(
        min_length = 1,
        max_length = 90,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*[^\u0000-\u001f\u007f-\u009f\s][^\u0000-\u001f\u007f-\u009f]*$"
    )]
    pub worker: String,
    /// The job.
    #[schema(value_type = i64, minimum = 1)]
    pub id: JobId,
    /// The token of the claim.
    #[schema(minimum = 1)]
    pub token: i64,
    /// Any JSON.
    #[schema(value_type = Value)]
    pub progress: JsonText,
}

/// Whether a lease is still held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Held {
    /// If not, it is lost: stop the work and drop its result.
    pub held: bool,
}

/// A job as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Job {
    /// Its id.
    #[schema(value_type = i64)]
    pub id: JobId,
    /// The queue it is in.
    pub queue: String,
    /// What sort of work it is.
    pub kind: String,
    /// Where it is.
    #[schema(value_type = JobStatusName)]
    pub status: JobStatus,
    /// Higher goes first.
    pub priority: i16,
    /// What to work on.
    #[schema(value_type = Value)]
    pub payload: JsonText,
    /// Not before this.
    #[schema(value_type = String, format = DateTime)]
    pub run_at: Timestamp,
    /// Claims that count, the current one included.
    pub attempts: u32,
    /// How often it is tried.
    pub max_attempts: u32,
    /// The wait between tries.
    pub backoff: Backoff,
    /// How long an attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// What makes a repeated enqueue the same, while it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedup_key: Option<String>,
    /// The worker that has it, while running: its name, and behind `@` the id of its key if it came over HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_by: Option<String>,
    /// When that worker took it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub claimed_at: Option<Timestamp>,
    /// Until when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub lease_expires_at: Option<Timestamp>,
    /// The fencing token of the last claim; 0 before the first.
    pub token: i64,
    /// What its worker reported last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub progress: Option<JsonText>,
    /// What it came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub result: Option<JsonText>,
    /// The last thing that went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// The execution of which it is a node, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    pub execution: Option<ExecutionId>,
    /// When it was enqueued.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub finished_at: Option<Timestamp>,
}

/// Where a job is.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[allow(
    dead_code,
    missing_docs,
    reason = "describes a type of the core in the API's documentation"
)]
pub enum JobStatusName {
    Queued,
    Running,
    Completed,
    Failed,
}
