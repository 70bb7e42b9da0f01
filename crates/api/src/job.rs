//! JSON of jobs: enqueue, claim, renew and finish.

use crate::queue::Backoff;
use leasehold_core::{ExecutionId, JobId, JobStatus, JsonText, Named, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A job to enqueue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewJob {
    /// Job kind, by which workers select the handler.
    #[schema(
        min_length = 1,
        max_length = 128,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*[^\u0000-\u001f\u007f-\u009f\s][^\u0000-\u001f\u007f-\u009f]*$",
        example = "welcome"
    )]
    pub kind: String,
    /// The input of the handler: any JSON.
    #[serde(default)]
    #[schema(value_type = Value)]
    pub payload: JsonText,
    /// Priority; a higher value runs first. Default: 0.
    #[serde(default)]
    #[schema(minimum = -1000, maximum = 1000)]
    pub priority: i16,
    /// Earliest start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub run_at: Option<Timestamp>,
    /// Earliest start, in milliseconds from now. Cannot be combined with `run_at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 31_622_400_000u64)]
    pub run_in_ms: Option<u64>,
    /// Maximum number of attempts. Default: the queue's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 32_767)]
    pub max_attempts: Option<u32>,
    /// Delay between attempts. Default: the queue's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
    /// Time limit of an attempt, in milliseconds. Default: the queue's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 31_622_400_000u64)]
    pub timeout_ms: Option<u64>,
    /// Deduplication key, unique in the queue: a repeated enqueue returns the first job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*[^\u0000-\u001f\u007f-\u009f\s][^\u0000-\u001f\u007f-\u009f]*$"
    )]
    pub dedup_key: Option<String>,
    /// How long the key is held, in milliseconds, even if the job ends earlier. Default: until the job has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 31_622_400_000u64)]
    pub dedup_window_ms: Option<u64>,
    /// Workspace whose graph the job is a node of. The job is rejected unless graphs of the workspace may use the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<uuid::Uuid>)]
    pub workspace_id: Option<WorkspaceId>,
}

impl NewJob {
    /// Creates a job with default options.
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
            workspace_id: None,
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

/// The result of enqueueing a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EnqueuedJob {
    /// Id of the job.
    #[schema(value_type = i64)]
    pub id: JobId,
    /// Whether this call enqueued the job; if not, the job already held the dedup key.
    pub inserted: bool,
}

/// The results of a batch, in the order of the batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EnqueuedJobs {
    /// The jobs.
    pub jobs: Vec<EnqueuedJob>,
}

/// How to claim jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimOptions {
    /// Name of the worker, unique among the workers with the same key.
    #[schema(
        min_length = 1,
        max_length = 90,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*[^\u0000-\u001f\u007f-\u009f\s][^\u0000-\u001f\u007f-\u009f]*$",
        example = "host-1:4711"
    )]
    pub worker: String,
    /// Maximum number of jobs. Default: 1.
    #[serde(default = "one")]
    #[schema(minimum = 1, maximum = 1000)]
    pub max: u32,
    /// Duration of the leases, in milliseconds. Default: the queue's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 100, maximum = 86_400_000)]
    pub lease_ms: Option<u64>,
    /// How long to wait for a job if there are none, in milliseconds. Default: 0.
    #[serde(default)]
    #[schema(maximum = 60_000)]
    pub wait_ms: u64,
}

fn one() -> u32 {
    1
}

/// The result of a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ClaimedJobs {
    /// The claimed jobs, in order; may be empty.
    pub jobs: Vec<ClaimedJob>,
    /// Whether a limit ended the claim: more jobs may be due.
    pub at_limit: bool,
    /// If fewer jobs than requested were claimed: milliseconds until the next queued job is due, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_due_in_ms: Option<u64>,
    /// How long the server waited before it claimed these jobs, in milliseconds. Their leases began no earlier than this time after the caller sent the
    /// call: a worker that reads the answer later than `waited_ms` + `lease_ms` after that must not start the jobs.
    #[serde(default)]
    pub waited_ms: u64,
}

/// A claimed job with its lease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ClaimedJob {
    /// Id.
    #[schema(value_type = i64)]
    pub id: JobId,
    /// Fencing token; higher than that of every earlier claim of the job.
    pub token: i64,
    /// Job kind.
    pub kind: String,
    /// The input of the handler.
    #[schema(value_type = Value)]
    pub payload: JsonText,
    /// Priority.
    pub priority: i16,
    /// Number of this attempt, starting at 1.
    pub attempt: u32,
    /// Maximum number of attempts.
    pub max_attempts: u32,
    /// Delay between attempts.
    pub backoff: Backoff,
    /// Time limit of this attempt, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The last progress report of an earlier attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub progress: Option<JsonText>,
    /// The last error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// The W3C trace context of the enqueueing call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_context: Option<String>,
    /// When the job was enqueued.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Duration of the lease from the claim on, in milliseconds.
    pub lease_ms: u64,
    /// When the lease expires unless renewed, by the clock of the server.
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
    /// The fencing token of the claim.
    #[schema(minimum = 1)]
    pub token: i64,
}

/// Leases to renew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaseRenewal {
    /// The worker that claimed the jobs.
    #[schema(
        min_length = 1,
        max_length = 90,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*[^\u0000-\u001f\u007f-\u009f\s][^\u0000-\u001f\u007f-\u009f]*$"
    )]
    pub worker: String,
    /// The claims.
    #[schema(min_items = 1, max_items = 10_000)]
    pub claims: Vec<JobRef>,
    /// New duration of the leases from now on, in milliseconds.
    #[schema(minimum = 100, maximum = 86_400_000)]
    pub lease_ms: u64,
}

/// The leases that were renewed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RenewedLeases {
    /// The jobs whose lease was renewed. A lease that is neither here nor in `busy` is lost: stop the work and discard its result.
    #[schema(value_type = Vec<i64>)]
    pub held: Vec<JobId>,
    /// The jobs whose lease is held but could not be renewed now, because another transaction has locked it in the database. It ends as before:
    /// renew it again soon.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<i64>)]
    pub busy: Vec<JobId>,
}

/// Claimed jobs to finish.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FinishBatch {
    /// The worker that claimed the jobs.
    #[schema(
        min_length = 1,
        max_length = 90,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*[^\u0000-\u001f\u007f-\u009f\s][^\u0000-\u001f\u007f-\u009f]*$"
    )]
    pub worker: String,
    /// The outcome of each job.
    #[schema(min_items = 1, max_items = 10_000)]
    pub finishes: Vec<Finish>,
}

/// The outcome of a claimed job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Finish {
    /// The job.
    #[schema(value_type = i64, minimum = 1)]
    pub id: JobId,
    /// The fencing token of the claim.
    #[schema(minimum = 1)]
    pub token: i64,
    /// How the attempt ended.
    pub outcome: JobOutcome,
    /// The result; with `completed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub result: Option<JsonText>,
    /// The error; required with `failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 100_000)]
    pub error: Option<String>,
    /// With `failed`: `false` fails the job without a retry. Default: the retry policy decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<bool>,
    /// Delay in milliseconds: until the next attempt with `failed` (default: the retry policy), or until the job is due again with `snoozed` (required).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 31_622_400_000u64)]
    pub after_ms: Option<u64>,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobOutcome {
    /// The work is done.
    Completed,
    /// The attempt failed.
    Failed,
    /// Postponed; does not count as an attempt.
    Snoozed,
    /// Returned to the queue without being started; does not count as an attempt.
    GivenBack,
}

/// The result of each finish, in the order of the call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FinishResults {
    /// One result per finish.
    pub finished: Vec<FinishResult>,
}

/// The result of a finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FinishResult {
    /// The job.
    #[schema(value_type = i64)]
    pub id: JobId,
    /// The state of the job now.
    pub state: FinishState,
    /// When the job may run again, if it is queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub run_at: Option<Timestamp>,
}

/// The state of a job after a finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishState {
    /// Completed.
    Completed,
    /// Failed; no further attempt.
    Failed,
    /// Queued again.
    Queued,
    /// The lease was lost or never held: nothing was changed. Discard the result of the work.
    LeaseLost,
    /// The store failed at this job, and finished others of the call. The lease is still held: send this finish again.
    NotWritten,
}

/// A worker's progress report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProgressReport {
    /// The worker that claimed the job.
    #[schema(
        min_length = 1,
        max_length = 90,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*[^\u0000-\u001f\u007f-\u009f\s][^\u0000-\u001f\u007f-\u009f]*$"
    )]
    pub worker: String,
    /// The job.
    #[schema(value_type = i64, minimum = 1)]
    pub id: JobId,
    /// The fencing token of the claim.
    #[schema(minimum = 1)]
    pub token: i64,
    /// Any JSON.
    #[schema(value_type = Value)]
    pub progress: JsonText,
}

/// Whether a lease is still held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeaseStatus {
    /// Whether the lease is held. If not, it is lost: stop the work and discard its result.
    pub held: bool,
}

/// A job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Job {
    /// Id.
    #[schema(value_type = i64)]
    pub id: JobId,
    /// The queue.
    pub queue: String,
    /// Job kind.
    pub kind: String,
    /// Status.
    #[schema(value_type = JobStatusName)]
    pub status: Named<JobStatus>,
    /// Priority; a higher value runs first.
    pub priority: i16,
    /// The input of the handler.
    #[schema(value_type = Value)]
    pub payload: JsonText,
    /// Whether payloads are hidden from the key of this call: `payload` is null; `progress`, `result` and `last_error` are absent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub payload_hidden: bool,
    /// Earliest start.
    #[schema(value_type = String, format = DateTime)]
    pub run_at: Timestamp,
    /// Number of attempts, including the current one.
    pub attempts: u32,
    /// Maximum number of attempts.
    pub max_attempts: u32,
    /// Delay between attempts.
    pub backoff: Backoff,
    /// Time limit of an attempt, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Deduplication key, while it is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedup_key: Option<String>,
    /// The worker that holds the job while it is running: its name, followed by `@` and the id of its key if it claimed over HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_by: Option<String>,
    /// When the worker claimed the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub claimed_at: Option<Timestamp>,
    /// When the lease expires unless renewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub lease_expires_at: Option<Timestamp>,
    /// Fencing token of the last claim; 0 before the first.
    pub token: i64,
    /// The last progress report of its worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub progress: Option<JsonText>,
    /// The result of a completed job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub result: Option<JsonText>,
    /// The last error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// The execution, if the job is a node of a graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    pub execution: Option<ExecutionId>,
    /// When the job was enqueued.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When the job ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub finished_at: Option<Timestamp>,
}

/// The status of a job.
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
