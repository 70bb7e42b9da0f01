//! JSON of requests.

use leasehold_core::{
    DefinitionId, ExecutionId, FailureReason, JsonText, Named, RequestId, RequestStatus, Timestamp,
    VersionId, WorkspaceId,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A request to enqueue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRequest {
    /// The definition to run.
    #[schema(value_type = String, format = Uuid)]
    pub definition: DefinitionId,
    /// The input of the execution: any JSON.
    #[serde(default)]
    #[schema(value_type = Value)]
    pub params: JsonText,
    /// Priority; a higher value is admitted first. Default: 0.
    #[serde(default)]
    #[schema(minimum = -1000, maximum = 1000)]
    pub priority: i16,
    /// Earliest start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub run_at: Option<Timestamp>,
    /// Idempotency key, unique in the workspace: a repeated call returns the first request. For a single request, the header `Idempotency-Key` is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*[^\u0000-\u001f\u007f-\u009f\s][^\u0000-\u001f\u007f-\u009f]*$"
    )]
    pub idempotency_key: Option<String>,
    /// How long the key is held, in milliseconds. Default: as long as the request is retained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 31_622_400_000u64)]
    pub dedupe_window_ms: Option<u64>,
}

impl NewRequest {
    /// Creates a request with default options.
    pub fn new(definition: DefinitionId, params: impl Into<JsonText>) -> Self {
        Self {
            definition,
            params: params.into(),
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

/// The result of enqueueing a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EnqueuedRequest {
    /// Id of the request.
    #[schema(value_type = String, format = Uuid)]
    pub id: RequestId,
    /// Whether this call enqueued the request; if not, the request already held the idempotency key.
    pub inserted: bool,
}

/// The results of a batch, in the order of the batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EnqueuedRequests {
    /// The requests.
    pub requests: Vec<EnqueuedRequest>,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Request {
    /// Id.
    #[schema(value_type = String, format = Uuid)]
    pub id: RequestId,
    /// The workspace of the request.
    #[schema(value_type = String, format = Uuid)]
    pub workspace: WorkspaceId,
    /// The definition to run.
    #[schema(value_type = String, format = Uuid)]
    pub definition: DefinitionId,
    /// The version, pinned when the request was enqueued.
    #[schema(value_type = String, format = Uuid)]
    pub version: VersionId,
    /// Status.
    #[schema(value_type = RequestStatusName)]
    pub status: Named<RequestStatus>,
    /// Priority; a higher value is admitted first.
    pub priority: i16,
    /// The input of the execution.
    #[schema(value_type = Value)]
    pub params: JsonText,
    /// Whether payloads are hidden from the key of this call: `params` is null and `last_error` absent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub payload_hidden: bool,
    /// Earliest start.
    #[schema(value_type = String, format = DateTime)]
    pub run_at: Timestamp,
    /// Idempotency key, while it is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The execution created for the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    pub execution: Option<ExecutionId>,
    /// Number of releases, recoveries and failures.
    pub attempt_count: u32,
    /// Starts that the engine rejected because of the request itself.
    pub dispatch_failures: u32,
    /// Why the request failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<FailureReasonName>)]
    pub failure_reason: Option<Named<FailureReason>>,
    /// The last error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// The failed request that this one redrives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    pub redrive_of: Option<RequestId>,
    /// When cancellation was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub cancel_requested_at: Option<Timestamp>,
    /// When the request was enqueued.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When the request was claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub claimed_at: Option<Timestamp>,
    /// When its execution was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub dispatched_at: Option<Timestamp>,
    /// When the request ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub finished_at: Option<Timestamp>,
}

/// How to cancel a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelOptions {
    /// Whether to terminate a running execution instead of asking it to stop.
    #[serde(default)]
    pub force: bool,
}

/// The result of a cancellation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CancelResult {
    /// The state of the cancellation.
    pub state: CancelState,
    /// The execution that is being cancelled, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    pub execution: Option<ExecutionId>,
}

/// The state of a cancellation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CancelState {
    /// The request has failed as cancelled.
    Cancelled,
    /// The cancel request is recorded; the request ends when its start is resolved or its execution has ended.
    Cancelling,
}

/// Selects failed requests to redrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RedriveMany {
    /// Only requests that failed for this reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<FailureReasonName>)]
    pub reason: Option<FailureReason>,
    /// Only requests of this definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    pub definition: Option<DefinitionId>,
    /// Maximum number of requests. Default: 1,000. A call redrives fewer if they have more than 16 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 10_000)]
    pub limit: Option<u32>,
}

/// A failed request and its redrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RedrivenRequest {
    /// The failed request, which is not changed.
    #[schema(value_type = String, format = Uuid)]
    pub failed: RequestId,
    /// The new request.
    #[schema(value_type = String, format = Uuid)]
    pub request: RequestId,
}

/// The redriven requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RedrivenRequests {
    /// The redriven requests, oldest first. Repeat the call until there are none.
    pub redriven: Vec<RedrivenRequest>,
}

/// The status of a request.
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
