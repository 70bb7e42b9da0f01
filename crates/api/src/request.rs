//! Requests: what is asked to run, and what became of it.

use leasehold_core::{
    DefinitionId, ExecutionId, FailureReason, RequestId, RequestStatus, Timestamp, VersionId,
    WorkspaceId,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A request to enqueue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRequest {
    /// What to run.
    #[schema(value_type = String, format = Uuid)]
    pub definition: DefinitionId,
    /// What to run it with.
    #[serde(default)]
    #[schema(value_type = Value)]
    pub params: Value,
    /// Higher goes first.
    #[serde(default)]
    #[schema(minimum = -1000, maximum = 1000)]
    pub priority: i16,
    /// Not before this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub run_at: Option<Timestamp>,
    /// What makes a repeated call the same one; for one request the header `Idempotency-Key` says it as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*[^\u0000-\u001f\u007f-\u009f\s][^\u0000-\u001f\u007f-\u009f]*$"
    )]
    pub idempotency_key: Option<String>,
    /// How long that key holds; without it, as long as the request is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 31_622_400_000u64)]
    pub dedupe_window_ms: Option<u64>,
}

impl NewRequest {
    /// A request with ordinary options.
    pub fn new(definition: DefinitionId, params: Value) -> Self {
        Self {
            definition,
            params,
            priority: 0,
            run_at: None,
            idempotency_key: None,
            dedupe_window_ms: None,
        }
    }
}

/// Requests to enqueue, all or none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRequests {
    /// The requests.
    #[schema(min_items = 1, max_items = 10_000)]
    pub requests: Vec<NewRequest>,
}

/// A request in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Enqueued {
    /// Its id.
    #[schema(value_type = String, format = Uuid)]
    pub id: RequestId,
    /// Whether this call put it there; if not, its idempotency key was held by this one.
    pub inserted: bool,
}

/// Requests in the queue, in the order asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EnqueuedMany {
    /// The requests.
    pub requests: Vec<Enqueued>,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Request {
    /// Its id.
    #[schema(value_type = String, format = Uuid)]
    pub id: RequestId,
    /// Whose it is.
    #[schema(value_type = String, format = Uuid)]
    pub workspace: WorkspaceId,
    /// What it asks to run.
    #[schema(value_type = String, format = Uuid)]
    pub definition: DefinitionId,
    /// The version it was pinned to when it was enqueued.
    #[schema(value_type = String, format = Uuid)]
    pub version: VersionId,
    /// Where it is.
    #[schema(value_type = RequestStatusName)]
    pub status: RequestStatus,
    /// Higher goes first.
    pub priority: i16,
    /// What it runs with.
    #[schema(value_type = Value)]
    pub params: Value,
    /// Not before this.
    #[schema(value_type = String, format = DateTime)]
    pub run_at: Timestamp,
    /// What makes a repeated enqueue the same, while it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The execution created for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    pub execution: Option<ExecutionId>,
    /// Releases, recoveries and failures.
    pub attempt_count: u32,
    /// Starts that definitely did not happen because of the request itself.
    pub dispatch_failures: u32,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<FailureReasonName>)]
    pub failure_reason: Option<FailureReason>,
    /// The last thing that went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// Which failed request it repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    pub redrive_of: Option<RequestId>,
    /// When someone wished to cancel it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub cancel_requested_at: Option<Timestamp>,
    /// When it was enqueued.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When it was claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub claimed_at: Option<Timestamp>,
    /// When its execution was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub dispatched_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub finished_at: Option<Timestamp>,
}

/// How to cancel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    /// Whether a running execution is ended without being asked.
    #[serde(default)]
    pub force: bool,
}

/// What became of a cancellation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Cancelled {
    /// Where it is now.
    pub state: CancelState,
    /// The execution that is being ended, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    pub execution: Option<ExecutionId>,
}

/// Where a cancellation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CancelState {
    /// The request has failed as cancelled.
    Cancelled,
    /// The wish is kept; it ends when its start is resolved or its execution has ended.
    Cancelling,
}

/// Failed requests to redrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RedriveMany {
    /// Only those that failed for this reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<FailureReasonName>)]
    pub reason: Option<FailureReason>,
    /// How many at most, 1,000 unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 10_000)]
    pub limit: Option<u32>,
}

/// A failed request and the one that repeats it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Redriven {
    /// The failed one, which stays as it is.
    #[schema(value_type = String, format = Uuid)]
    pub failed: RequestId,
    /// The new one.
    #[schema(value_type = String, format = Uuid)]
    pub request: RequestId,
}

/// What was redriven.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RedrivenMany {
    /// Failed requests that were never redriven before, oldest first.
    pub redriven: Vec<Redriven>,
}

/// Where a request is.
#[derive(ToSchema)]
#[schema(rename_all = "UPPERCASE")]
#[allow(
    dead_code,
    missing_docs,
    reason = "describes a type of the core in the API's documentation"
)]
pub enum RequestStatusName {
    Pending,
    Claimed,
    Dispatched,
    Completed,
    Failed,
}

crate::names::names! {
    /// Why a request failed.
    FailureReasonName = FailureReason::ALL.map(FailureReason::as_str)
}
