//! Requests: parameters and outcomes.

use leasehold_core::{
    DefinitionId, ExecutionId, FailureReason, RequestId, RequestStatus, Timestamp, VersionId,
    WorkspaceId,
};
use serde_json::Value;
use std::time::Duration;

use crate::lock::LockToken;

/// One row of the execution queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Its id.
    pub id: RequestId,
    /// Whose it is.
    pub workspace: WorkspaceId,
    /// What it asks to run.
    pub definition: DefinitionId,
    /// The version it was pinned to when it was enqueued.
    pub version: VersionId,
    /// Where it is.
    pub status: RequestStatus,
    /// Higher goes first.
    pub priority: i16,
    /// What it runs with.
    pub params: Value,
    /// Not before this.
    pub run_at: Timestamp,
    /// What makes a repeated enqueue the same; none once its window has passed.
    pub idempotency_key: Option<String>,
    /// The execution created for it.
    pub execution: Option<ExecutionId>,
    /// Releases, recoveries and failures.
    pub attempt_count: u32,
    /// Starts that definitely did not happen because of the request itself.
    pub dispatch_failures: u32,
    /// Why it failed.
    pub failure_reason: Option<FailureReason>,
    /// The last thing that went wrong.
    pub last_error: Option<String>,
    /// Which failed request it repeats.
    pub redrive_of: Option<RequestId>,
    /// When someone wished to cancel it.
    pub cancel_requested_at: Option<Timestamp>,
    /// Who claimed it, while CLAIMED.
    pub claimed_by: Option<String>,
    /// Until when, while CLAIMED.
    pub lease_expires_at: Option<Timestamp>,
    /// The caller's trace context.
    pub trace_context: Option<String>,
    /// When it was enqueued.
    pub created_at: Timestamp,
    /// When it was claimed; none again after a release.
    pub claimed_at: Option<Timestamp>,
    /// When its execution was started.
    pub dispatched_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

/// Requests to enqueue in one workspace.
#[derive(Clone, Debug)]
pub struct Enqueue {
    /// Whose they are.
    pub workspace: WorkspaceId,
    /// The requests, at most 10,000.
    pub requests: Vec<NewRequest>,
    /// Who asks, for the event log.
    pub by: String,
}

/// A request to enqueue.
#[derive(Clone, Debug)]
pub struct NewRequest {
    /// Its id; rising ids keep the order of one call.
    pub id: RequestId,
    /// What to run.
    pub definition: DefinitionId,
    /// What to run it with.
    pub params: Value,
    /// Higher goes first.
    pub priority: i16,
    /// Not before this; none means now.
    pub run_at: Option<Timestamp>,
    /// What makes a repeated enqueue the same.
    pub idempotency: Option<Idempotency>,
    /// The caller's trace context.
    pub trace_context: Option<String>,
    /// The version that the params were checked against; none where they were not.
    pub checked_against: Option<VersionId>,
}

/// What makes a repeated enqueue the same, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// The key, unique in the workspace.
    pub key: String,
    /// How long it holds; none means as long as the request is kept.
    pub window: Option<Duration>,
}

impl NewRequest {
    /// A request with ordinary options.
    pub fn new(id: RequestId, definition: DefinitionId, params: Value) -> Self {
        Self {
            id,
            definition,
            params,
            priority: 0,
            run_at: None,
            idempotency: None,
            trace_context: None,
            checked_against: None,
        }
    }
}

/// What became of an enqueue call.
#[derive(Clone, Debug, PartialEq)]
pub enum Enqueued {
    /// All are in the queue, in the order asked.
    All(Vec<EnqueuedRequest>),
    /// There is no such workspace, or it is deleted. Nothing was inserted.
    WorkspaceNotFound,
    /// There is no such definition, or it is deleted. Nothing was inserted.
    DefinitionNotFound(DefinitionId),
    /// The definition is another workspace's. Nothing was inserted.
    DefinitionForbidden(DefinitionId),
    /// The definition has no version yet. Nothing was inserted.
    NotPublished(DefinitionId),
    /// Another version is current than the one the params were checked against. Nothing was inserted.
    VersionMoved(DefinitionId),
    /// The key is held by a request with other params or another definition. Nothing was inserted.
    KeyConflict {
        /// The key.
        key: String,
        /// Who holds it.
        held_by: RequestId,
    },
}

/// One request of an enqueue call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnqueuedRequest {
    /// The request in the queue: a new one, or the holder of the idempotency key.
    pub id: RequestId,
    /// Whether this call inserted it.
    pub inserted: bool,
}

/// A claim to make.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Who claims.
    pub owner: String,
    /// How many at most.
    pub batch: u32,
    /// How long the claims hold unless renewed.
    pub lease: Duration,
    /// The named lock that must still be held; none where no lock is needed.
    pub lock: Option<LockToken>,
}

/// What became of a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum ClaimOutcome {
    /// What was admitted and what was rejected, maybe nothing.
    Claimed(Claimed),
    /// The named lock is lost. Nothing was claimed.
    LockLost,
}

/// What a claim brought.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claimed {
    /// Admitted, in the order of admission.
    pub requests: Vec<ClaimedRequest>,
    /// Failed instead, because something they need is gone.
    pub rejected: Vec<(RequestId, FailureReason)>,
    /// Whether another claim may bring more at once.
    pub more: bool,
    /// Workspaces that this claim filled while they have more waiting.
    pub at_capacity: Vec<AtCapacity>,
    /// How long until the next waiting request becomes due, by the store's clock; none if none waits for its time.
    pub next_due_in: Option<Duration>,
}

/// A workspace that is full while it has more waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtCapacity {
    /// Which.
    pub workspace: WorkspaceId,
    /// How many executions hold a slot.
    pub active: u32,
    /// How many may.
    pub limit: u32,
}

/// An admitted request: all that is needed to start it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimedRequest {
    /// The request.
    pub id: RequestId,
    /// Guards what the claimer writes.
    pub token: i64,
    /// Whose it is.
    pub workspace: WorkspaceId,
    /// What it runs.
    pub definition: DefinitionId,
    /// The version it is pinned to.
    pub version: VersionId,
    /// The execution to start.
    pub execution: ExecutionId,
    /// How the execution came about.
    pub origin: ExecutionOrigin,
    /// Higher goes first.
    pub priority: i16,
    /// What to run it with.
    pub params: Value,
    /// Releases, recoveries and failures so far.
    pub attempt_count: u32,
    /// Starts that definitely did not happen so far.
    pub dispatch_failures: u32,
    /// Whether someone wished to cancel it.
    pub cancel_requested: bool,
    /// The caller's trace context.
    pub trace_context: Option<String>,
    /// When it was enqueued.
    pub created_at: Timestamp,
    /// Until when the claim holds.
    pub lease_expires_at: Timestamp,
}

/// How the execution of a claimed request came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutionOrigin {
    /// Created by this claim.
    Created,
    /// Kept from an earlier claim whose start is unknown.
    Kept,
    /// The one kept was unexpectedly gone; created anew.
    Replaced,
}

/// A claim that someone holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimRef {
    /// The request.
    pub request: RequestId,
    /// Its fencing token.
    pub token: i64,
}

impl From<&ClaimedRequest> for ClaimRef {
    fn from(claimed: &ClaimedRequest) -> Self {
        Self {
            request: claimed.id,
            token: claimed.token,
        }
    }
}

/// What became of marking a request dispatched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatched {
    /// It is DISPATCHED now.
    Dispatched,
    /// It is DISPATCHED now, and someone wished to cancel it meanwhile.
    Cancelling,
    /// Its execution has ended already.
    AlreadyFinished,
    /// The claim is not held any more.
    LeaseLost,
}

/// A claim to give back.
#[derive(Clone, Debug)]
pub struct Release {
    /// The claim.
    pub claim: ClaimRef,
    /// What is known of the start.
    pub kind: ReleaseKind,
    /// Not before this has passed.
    pub delay: Duration,
    /// What went wrong.
    pub error: Option<String>,
}

/// What is known of a start when its claim is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseKind {
    /// Definitely not started, because of the request: counts as a dispatch failure, frees the slot, and fails
    /// the request as exhausted at `max_attempts`.
    Refused {
        /// How many dispatch failures end it.
        max_attempts: u32,
    },
    /// Nobody knows: execution and slot stay with the request.
    Unknown,
    /// Definitely not started, and not for any fault of the request: frees the slot, counts no failure.
    NotStarted,
}

/// What became of giving a claim back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// It is PENDING again.
    Pending,
    /// It is FAILED: refused as often as is tried.
    Exhausted,
    /// It is FAILED: its cancellation was wished and nothing was started.
    Cancelled,
    /// The claim is not held any more.
    LeaseLost,
}

/// A claim to give up.
#[derive(Clone, Debug)]
pub struct Fail {
    /// The claim.
    pub claim: ClaimRef,
    /// Why.
    pub reason: FailureReason,
    /// What went wrong.
    pub error: Option<String>,
}

/// A claim whose lease had expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The request.
    pub request: RequestId,
    /// Whose it is.
    pub workspace: WorkspaceId,
    /// The execution it keeps.
    pub execution: ExecutionId,
}

/// A request to cancel.
#[derive(Clone, Debug)]
pub struct Cancel {
    /// Whose it is.
    pub workspace: WorkspaceId,
    /// Which.
    pub request: RequestId,
    /// Whether a running execution is ended without being asked. A later call can ask for it where an earlier did not.
    pub force: bool,
    /// Who asks.
    pub by: String,
}

/// A wish to cancel what runs that the engine has not been told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CancelWish {
    /// The request.
    pub request: RequestId,
    /// Whose it is.
    pub workspace: WorkspaceId,
    /// What runs.
    pub execution: ExecutionId,
    /// Whether it is ended without being asked.
    pub force: bool,
}

/// What became of a cancellation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// It is FAILED now.
    Cancelled,
    /// The wish is kept; its start is not resolved yet.
    Wished(ExecutionId),
    /// The wish is kept; the execution runs and must be cancelled in the engine.
    Running(ExecutionId),
    /// It had ended before.
    AlreadyFinished,
    /// There is no such request.
    NotFound,
}

/// A failed request to repeat.
#[derive(Clone, Debug)]
pub struct Redrive {
    /// Whose it is.
    pub workspace: WorkspaceId,
    /// The failed request.
    pub failed: RequestId,
    /// The id of the new one.
    pub id: RequestId,
    /// Who asks.
    pub by: String,
}

/// Failed requests to repeat.
#[derive(Clone, Debug)]
pub struct RedriveMany {
    /// Whose they are.
    pub workspace: WorkspaceId,
    /// Only those that failed for this reason.
    pub reason: Option<FailureReason>,
    /// How many at most.
    pub limit: u32,
    /// Who asks.
    pub by: String,
}

/// What became of a redrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redriven {
    /// The new request is in the queue.
    Enqueued(RequestId),
    /// An earlier redrive has not ended yet.
    AlreadyLive(RequestId),
    /// The request has not failed.
    NotFailed,
    /// Its workspace or definition is deleted: it could only fail again.
    DefinitionNotFound,
    /// There is no such request.
    NotFound,
}

/// Which requests a list shows.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestFilter {
    /// Only this workspace's; none for all, which only an administrator may ask.
    pub workspace: Option<WorkspaceId>,
    /// Only in this status.
    pub status: Option<RequestStatus>,
    /// Only of this definition.
    pub definition: Option<DefinitionId>,
    /// Only failed for this reason.
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
    /// Ended well.
    pub completed: u64,
    /// Ended otherwise.
    pub failed: u64,
}

impl Counts {
    /// The number for one status.
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

/// What settling found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Requests that became due.
    pub due: u64,
    /// When the next waiting request becomes due.
    pub next_due: Option<Timestamp>,
}
