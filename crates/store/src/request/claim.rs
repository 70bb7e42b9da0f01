//! Claiming requests: parameters and outcomes.

use crate::lock::LockToken;
use leasehold_core::{
    DefinitionId, ExecutionId, FailureReason, JsonText, RequestId, Timestamp, VersionId,
    WorkspaceId,
};
use std::time::Duration;

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
    pub rejected: Vec<Rejected>,
    /// Put back into the line, because the execution they kept is gone or has ended. Told once, by the claim that found it; a later one may
    /// admit them anew.
    pub orphaned: Vec<Orphaned>,
    /// Whether another claim may bring more at once.
    pub more: bool,
    /// Workspaces that this claim filled while they have more waiting.
    pub at_capacity: Vec<AtCapacity>,
    /// How long until the next waiting request becomes due, by the store's clock; none if none waits for its time.
    pub next_due_in: Option<Duration>,
}

/// A request that failed instead of being admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The request.
    pub request: RequestId,
    /// Whose it is.
    pub workspace: WorkspaceId,
    /// What is gone.
    pub reason: FailureReason,
}

/// A request that kept an execution which was unexpectedly gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Orphaned {
    /// The request.
    pub request: RequestId,
    /// Whose it is.
    pub workspace: WorkspaceId,
    /// The execution it had.
    pub execution: ExecutionId,
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
    /// What to run it with, as the store has it: numbers keep all their digits.
    pub params: JsonText,
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
    /// When it was due, the last time it was put into the line.
    pub run_at: Timestamp,
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
