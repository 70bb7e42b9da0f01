//! Requests: parameters and outcomes.

mod claim;
mod crash;
mod store;
#[cfg(test)]
mod tests;

pub use claim::{
    AtCapacity, Claim, ClaimOutcome, ClaimRef, Claimed, ClaimedRequest, ExecutionOrigin, Orphaned,
    Rejected,
};
pub use crash::{CRASHED, Crash, CrashedRequest};
pub use store::{RequestObserver, RequestStore};

use crate::record::{RecordRow, record};
use leasehold_core::quota::request_bytes;
use leasehold_core::{
    DefinitionId, ExecutionId, FailureReason, JsonText, Named, RequestId, RequestStatus, Timestamp,
    VersionId, WorkspaceId,
};
use std::time::Duration;

/// Shown in place of params that this program cannot parse, so that one such request does not make a list fail.
const UNREADABLE: &str = "\"(these params cannot be read)\"";

record! {
    /// One row of the execution queue.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Request {
        /// Its id.
        pub id: RequestId = "id",
        /// The workspace it belongs to.
        pub workspace: WorkspaceId = "workspace_id",
        /// The definition to run.
        pub definition: DefinitionId = "definition_id",
        /// The version it was pinned to when it was enqueued.
        pub version: VersionId = "version_id",
        /// Its status.
        pub status: Named<RequestStatus> = "status",
        /// Higher is served first.
        pub priority: i16 = "priority",
        /// Its params in canonical form, as text: a tree takes up to a hundred times the memory.
        pub params: JsonText => params,
        /// The earliest time it may run.
        pub run_at: Timestamp = "run_at",
        /// Its idempotency key; none once the window has passed.
        pub idempotency_key: Option<String> = "idempotency_key",
        /// The execution created for it.
        pub execution: Option<ExecutionId> = "execution_id",
        /// Releases, recoveries and failures.
        pub attempt_count: u32 = "attempt_count",
        /// Starts that the engine rejected.
        pub dispatch_failures: u32 = "dispatch_failures",
        /// Why it failed.
        pub failure_reason: Option<Named<FailureReason>> = "failure_reason",
        /// The last error.
        pub last_error: Option<String> = "last_error",
        /// The failed request that it repeats.
        pub redrive_of: Option<RequestId> = "redrive_of",
        /// When its cancellation was requested.
        pub cancel_requested_at: Option<Timestamp> = "cancel_requested_at",
        /// The dispatcher that claimed it, while CLAIMED.
        pub claimed_by: Option<String> = "claimed_by",
        /// When the lease expires, while CLAIMED.
        pub lease_expires_at: Option<Timestamp> = "lease_expires_at",
        /// The caller's trace context.
        pub trace_context: Option<String> = "trace_context",
        /// The bytes that it counts while it is open, without those of its execution.
        pub bytes: u64 = "bytes",
        /// When it was enqueued.
        pub created_at: Timestamp = "created_at",
        /// When it was claimed; reset to none by a release.
        pub claimed_at: Option<Timestamp> = "claimed_at",
        /// When its execution was started.
        pub dispatched_at: Option<Timestamp> = "dispatched_at",
        /// When it ended.
        pub finished_at: Option<Timestamp> = "finished_at",
    }
}

/// Reads params. Only one tree is in memory at a time.
fn params<R: RecordRow>(row: &R) -> std::result::Result<JsonText, R::Error> {
    let stored = row.json_text("params")?.and_then(|json| json.canonical());
    Ok(stored.unwrap_or_else(|| JsonText::trusted(UNREADABLE.to_owned())))
}

impl Request {
    /// Builds the row that an enqueue at `now` inserts, pinned to `version`.
    pub fn enqueued(
        workspace: WorkspaceId,
        new: &NewRequest,
        version: VersionId,
        now: Timestamp,
    ) -> Self {
        Self {
            id: new.id,
            workspace,
            definition: new.definition,
            version,
            status: RequestStatus::Pending.into(),
            priority: new.priority,
            params: new.params.clone(),
            run_at: new.run_at.unwrap_or(now),
            idempotency_key: new.idempotency.as_ref().map(|one| one.key.clone()),
            execution: None,
            attempt_count: 0,
            dispatch_failures: 0,
            failure_reason: None,
            last_error: None,
            redrive_of: None,
            cancel_requested_at: None,
            claimed_by: None,
            lease_expires_at: None,
            trace_context: new.trace_context.clone(),
            bytes: new.bytes(),
            created_at: now,
            claimed_at: None,
            dispatched_at: None,
            finished_at: None,
        }
    }

    /// Builds the row that a redrive of this request at `now` inserts: a copy without its `run_at` and its idempotency key.
    pub fn redriven(self, id: RequestId, now: Timestamp) -> Self {
        let new = NewRequest {
            id,
            definition: self.definition,
            params: self.params,
            priority: self.priority,
            run_at: None,
            idempotency: None,
            trace_context: self.trace_context,
            checked_against: None,
        };
        Self {
            redrive_of: Some(self.id),
            ..Self::enqueued(self.workspace, &new, self.version, now)
        }
    }
}

/// Requests to enqueue in one workspace.
#[derive(Clone, Debug)]
pub struct Enqueue {
    /// The workspace they belong to.
    pub workspace: WorkspaceId,
    /// The requests, at most 10,000.
    pub requests: Vec<NewRequest>,
    /// The caller, for the event log.
    pub by: String,
}

/// A request to enqueue.
#[derive(Clone, Debug)]
pub struct NewRequest {
    /// Its id; rising ids keep the order of one call.
    pub id: RequestId,
    /// The definition to run.
    pub definition: DefinitionId,
    /// Its params.
    pub params: JsonText,
    /// Higher is served first.
    pub priority: i16,
    /// The earliest time it may run; none is now.
    pub run_at: Option<Timestamp>,
    /// The idempotency key and its window.
    pub idempotency: Option<Idempotency>,
    /// The caller's trace context.
    pub trace_context: Option<String>,
    /// The version whose schema the params were validated against; none if they were not.
    pub checked_against: Option<VersionId>,
}

/// An idempotency key and its window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// The key, unique in the workspace.
    pub key: String,
    /// How long it holds; none is as long as the request is kept.
    pub window: Option<Duration>,
}

impl NewRequest {
    /// Creates a request with default options.
    pub fn new(id: RequestId, definition: DefinitionId, params: impl Into<JsonText>) -> Self {
        Self {
            id,
            definition,
            params: params.into(),
            priority: 0,
            run_at: None,
            idempotency: None,
            trace_context: None,
            checked_against: None,
        }
    }

    /// Returns the bytes that it counts while it is open. Serializes the params.
    pub fn bytes(&self) -> u64 {
        request_bytes(self.params.as_str().len())
    }
}

/// Outcome of an enqueue call.
#[derive(Clone, Debug, PartialEq)]
pub enum Enqueued {
    /// All requests are enqueued; results are in the order of the call.
    All(Vec<EnqueuedRequest>),
    /// No such workspace exists, or it is deleted. Nothing was inserted.
    WorkspaceNotFound,
    /// No such definition exists, or it is deleted. Nothing was inserted.
    DefinitionNotFound(DefinitionId),
    /// The definition belongs to another workspace. Nothing was inserted.
    DefinitionForbidden(DefinitionId),
    /// The definition has no version yet. Nothing was inserted.
    NotPublished(DefinitionId),
    /// A newer version became current than the one the params were validated against. Nothing was inserted.
    VersionMoved(DefinitionId),
    /// A request with other params or another definition holds the idempotency key. Nothing was inserted.
    KeyConflict {
        /// The key.
        key: String,
        /// The holder.
        held_by: RequestId,
    },
}

/// The result of enqueueing one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnqueuedRequest {
    /// The request in the queue: a new one, or the holder of the idempotency key.
    pub id: RequestId,
    /// Whether this call inserted it.
    pub inserted: bool,
}

/// The request that holds an idempotency key, which may have been pruned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHolder {
    /// The request.
    pub request: RequestId,
    /// Whether its definition and params are those of the request that was looked up.
    pub is_same: bool,
}

/// Outcome of marking a request dispatched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatched {
    /// It is now DISPATCHED.
    Dispatched,
    /// It is now DISPATCHED, and its cancellation was requested meanwhile.
    Cancelling,
    /// Its execution has already ended.
    AlreadyFinished,
    /// Nothing changed: another transaction has locked its row. Retry it.
    Busy,
    /// The lease is lost.
    LeaseLost,
}

/// Outcome of renewing leases. A claim in neither list is lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestsRenewed {
    /// Renewed.
    pub renewed: Vec<RequestId>,
    /// Still held, but not renewed: another transaction has locked the row. Their leases end as before.
    pub busy: Vec<RequestId>,
}

/// A claim to release.
#[derive(Clone, Debug)]
pub struct Release {
    /// The claim.
    pub claim: ClaimRef,
    /// The outcome of the start.
    pub kind: ReleaseKind,
    /// The delay before it is due again.
    pub delay: Duration,
    /// The error.
    pub error: Option<String>,
}

/// The outcome of a start when its claim is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseKind {
    /// The engine rejected the start: counts as a dispatch failure, frees the slot, and fails
    /// the request as exhausted at `max_attempts`.
    Refused {
        /// The number of dispatch failures that fails the request.
        max_attempts: u32,
    },
    /// The outcome is unknown: the request keeps its execution and slot.
    Unknown,
    /// Not started, and the request is not the cause: frees the slot, counts no failure.
    NotStarted,
}

/// Outcome of releasing a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// It is PENDING again.
    Pending,
    /// It is FAILED: the engine rejected the start and `max_attempts` is reached.
    Exhausted,
    /// It is FAILED: its cancellation was requested and nothing was started.
    Cancelled,
    /// Nothing changed: another transaction has locked its row or its execution's. Retry it.
    Busy,
    /// The lease is lost.
    LeaseLost,
}

/// A claim to fail.
#[derive(Clone, Debug)]
pub struct Fail {
    /// The claim.
    pub claim: ClaimRef,
    /// The failure reason.
    pub reason: FailureReason,
    /// The error.
    pub error: Option<String>,
}

/// A claim whose lease had expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The request.
    pub request: RequestId,
    /// The workspace it belongs to.
    pub workspace: WorkspaceId,
    /// The execution that it keeps.
    pub execution: ExecutionId,
}

/// A cancellation of a request.
#[derive(Clone, Debug)]
pub struct Cancel {
    /// The workspace it belongs to.
    pub workspace: WorkspaceId,
    /// The request.
    pub request: RequestId,
    /// Whether to terminate a running execution instead of cancelling it. A later call may add this.
    pub force: bool,
    /// The caller, for the event log.
    pub by: String,
}

/// A requested cancellation of a running execution that the engine has not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CancelRequest {
    /// The request.
    pub request: RequestId,
    /// The workspace it belongs to.
    pub workspace: WorkspaceId,
    /// The running execution.
    pub execution: ExecutionId,
    /// Whether to terminate it instead of cancelling it.
    pub force: bool,
}

/// Outcome of a cancellation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// It is now FAILED.
    Cancelled,
    /// The cancel request is stored; the outcome of its start is not known yet.
    Requested(ExecutionId),
    /// The cancel request is stored; the execution is running and must be cancelled in the engine.
    Running(ExecutionId),
    /// It had already ended.
    AlreadyFinished,
    /// No such request exists.
    NotFound,
}

/// A redrive of one failed request.
#[derive(Clone, Debug)]
pub struct Redrive {
    /// The workspace it belongs to.
    pub workspace: WorkspaceId,
    /// The failed request.
    pub failed: RequestId,
    /// The id of the new request.
    pub id: RequestId,
    /// The caller, for the event log.
    pub by: String,
}

/// A redrive of failed requests.
#[derive(Clone, Debug)]
pub struct RedriveMany {
    /// The workspace they belong to.
    pub workspace: WorkspaceId,
    /// Only requests that failed for this reason.
    pub reason: Option<FailureReason>,
    /// Only requests of this definition.
    pub definition: Option<DefinitionId>,
    /// The maximum number.
    pub limit: u32,
    /// The bytes that they may have together. The first one is redriven even if it has more.
    pub max_bytes: u64,
    /// The caller, for the event log.
    pub by: String,
}

/// Outcome of a redrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redriven {
    /// The new request is enqueued.
    Enqueued(RequestId),
    /// An earlier redrive has not ended yet.
    AlreadyLive(RequestId),
    /// The request has not failed.
    NotFailed,
    /// Its workspace or definition is deleted, so that it would fail again.
    DefinitionNotFound,
    /// No such request exists.
    NotFound,
}

/// Filter of a list of requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestFilter {
    /// Only of this workspace; none for all, which requires an administrator.
    pub workspace: Option<WorkspaceId>,
    /// Only in this status.
    pub status: Option<RequestStatus>,
    /// Only of this definition.
    pub definition: Option<DefinitionId>,
    /// Only if failed for this reason.
    pub reason: Option<FailureReason>,
}

/// Requests by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Waiting.
    pub pending: u64,
    /// Being started.
    pub claimed: u64,
    /// Running.
    pub dispatched: u64,
    /// Ended successfully.
    pub completed: u64,
    /// Ended otherwise.
    pub failed: u64,
}

impl Counts {
    /// Returns the count of one status.
    pub fn of(&self, status: RequestStatus) -> u64 {
        match status {
            RequestStatus::Pending => self.pending,
            RequestStatus::Claimed => self.claimed,
            RequestStatus::Dispatched => self.dispatched,
            RequestStatus::Completed => self.completed,
            RequestStatus::Failed => self.failed,
        }
    }
}

/// Since when the oldest request of each status has been in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oldest {
    /// The time of the answer, by the store's clock.
    pub at: Timestamp,
    /// Since when the oldest PENDING request has been due; none if none is due.
    pub pending: Option<Timestamp>,
    /// Since when the oldest request has been due that is first in its line and whose workspace has a free slot; none if there is none.
    pub startable: Option<Timestamp>,
    /// When the oldest CLAIMED request was claimed.
    pub claimed: Option<Timestamp>,
    /// When the oldest DISPATCHED request was dispatched.
    pub dispatched: Option<Timestamp>,
}

/// Outcome of promoting due requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promoted {
    /// Requests that became due.
    pub due: u64,
    /// Events folded into the counts; 0 in a store that keeps its counts current.
    pub folded: u64,
    /// When the next scheduled request becomes due.
    pub next_due: Option<Timestamp>,
}
