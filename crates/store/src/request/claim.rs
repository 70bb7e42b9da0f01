//! Claiming requests: parameters and outcomes.

use crate::lock::LockToken;
use leasehold_core::{
    Crashes, DefinitionId, ExecutionId, FailureReason, JsonText, RequestId, Timestamp, VersionId,
    WorkspaceId,
};
use std::time::Duration;

/// A claim to make.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The claimer.
    pub owner: String,
    /// The maximum number.
    pub batch: u32,
    /// The maximum number of requests that kept their execution, which are claimed first; none for the whole batch.
    pub kept_max: Option<u32>,
    /// The lease duration.
    pub lease: Duration,
    /// The named lock that the claimer must still hold; none if no lock is needed.
    pub lock: Option<LockToken>,
}

/// Outcome of a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum ClaimOutcome {
    /// The admitted and rejected requests; may be empty.
    Claimed(Claimed),
    /// The named lock is lost. Nothing was claimed.
    LockLost,
}

/// The result of a claim.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claimed {
    /// Admitted requests, in the order of admission.
    pub requests: Vec<ClaimedRequest>,
    /// Requests that failed, because their workspace, definition or version is deleted.
    pub rejected: Vec<Rejected>,
    /// Requests that returned to the line, because the execution they kept is missing or has ended. Each is reported once; a later claim may
    /// admit it with a new execution.
    pub orphaned: Vec<Orphaned>,
    /// Whether another claim may return more at once.
    pub more: bool,
    /// Workspaces that reached their limit in this claim while more requests wait.
    pub at_capacity: Vec<AtCapacity>,
    /// Time until the next scheduled request is due by the store's clock; none if none is scheduled.
    pub next_due_in: Option<Duration>,
}

/// A request that failed instead of being admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The request.
    pub request: RequestId,
    /// The workspace it belongs to.
    pub workspace: WorkspaceId,
    /// What was deleted.
    pub reason: FailureReason,
}

/// A request whose kept execution is unexpectedly missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Orphaned {
    /// The request.
    pub request: RequestId,
    /// The workspace it belongs to.
    pub workspace: WorkspaceId,
    /// The execution it had.
    pub execution: ExecutionId,
}

/// A workspace at its limit with more requests waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtCapacity {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// Slots in use.
    pub active: u32,
    /// The concurrency limit.
    pub limit: u32,
}

/// An admitted request with everything needed to start it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimedRequest {
    /// The request.
    pub id: RequestId,
    /// The fencing token; guards the claimer's writes.
    pub token: i64,
    /// The workspace it belongs to.
    pub workspace: WorkspaceId,
    /// The definition it runs.
    pub definition: DefinitionId,
    /// The version it is pinned to.
    pub version: VersionId,
    /// The execution to start.
    pub execution: ExecutionId,
    /// Where the execution comes from.
    pub origin: ExecutionOrigin,
    /// Higher is served first.
    pub priority: i16,
    /// The params as stored; numbers keep all their digits.
    pub params: JsonText,
    /// Why the params cannot be read, if so: a manual update can store JSON that this program cannot parse. Such a request cannot be started.
    pub unreadable: Option<String>,
    /// Releases, recoveries and failures so far.
    pub attempt_count: u32,
    /// Rejected starts so far.
    pub dispatch_failures: u32,
    /// Whether a cancellation was requested.
    pub cancel_requested: bool,
    /// Crashes of processes that computed its input, since the last success.
    pub crashes: Crashes,
    /// The caller's trace context.
    pub trace_context: Option<String>,
    /// When it was enqueued.
    pub created_at: Timestamp,
    /// When it last became due.
    pub run_at: Timestamp,
    /// When the lease expires.
    pub lease_expires_at: Timestamp,
}

/// Where the execution of a claimed request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutionOrigin {
    /// Created by this claim.
    Created,
    /// Kept from an earlier claim whose start is unknown.
    Kept,
    /// Created by this claim to replace a kept execution that is unexpectedly missing.
    Replaced,
}

/// Identifies a claim of a request.
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
