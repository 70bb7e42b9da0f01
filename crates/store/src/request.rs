//! Requests: parameters and outcomes.

mod claim;
mod store;

pub use claim::{
    AtCapacity, Claim, ClaimOutcome, ClaimRef, Claimed, ClaimedRequest, ExecutionOrigin, Orphaned,
    Rejected,
};
pub use store::{RequestObserver, RequestStore};

use crate::record::{RecordRow, record};
use leasehold_core::{
    DefinitionId, ExecutionId, FailureReason, RequestId, RequestStatus, Timestamp, VersionId,
    WorkspaceId,
};
use serde_json::Value;
use std::time::Duration;

/// Shown in place of params that this program cannot read: one such request must not hide a list of others.
const UNREADABLE: &str = "(these params cannot be read)";

record! {
    /// One row of the execution queue.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Request {
        /// Its id.
        pub id: RequestId = "id",
        /// Whose it is.
        pub workspace: WorkspaceId = "workspace_id",
        /// What it asks to run.
        pub definition: DefinitionId = "definition_id",
        /// The version it was pinned to when it was enqueued.
        pub version: VersionId = "version_id",
        /// Where it is.
        pub status: RequestStatus = "status",
        /// Higher goes first.
        pub priority: i16 = "priority",
        /// What it runs with.
        pub params: Value = "params" else Value::String(UNREADABLE.to_owned()),
        /// Not before this.
        pub run_at: Timestamp = "run_at",
        /// What makes a repeated enqueue the same; none once its window has passed.
        pub idempotency_key: Option<String> = "idempotency_key",
        /// The execution created for it.
        pub execution: Option<ExecutionId> = "execution_id",
        /// Releases, recoveries and failures.
        pub attempt_count: u32 = "attempt_count",
        /// Starts that definitely did not happen because of the request itself.
        pub dispatch_failures: u32 = "dispatch_failures",
        /// Why it failed; none also where a newer program knew a reason that this one does not.
        pub failure_reason: Option<FailureReason> => failure_reason,
        /// The last thing that went wrong.
        pub last_error: Option<String> = "last_error",
        /// Which failed request it repeats.
        pub redrive_of: Option<RequestId> = "redrive_of",
        /// When someone wished to cancel it.
        pub cancel_requested_at: Option<Timestamp> = "cancel_requested_at",
        /// Who claimed it, while CLAIMED.
        pub claimed_by: Option<String> = "claimed_by",
        /// Until when, while CLAIMED.
        pub lease_expires_at: Option<Timestamp> = "lease_expires_at",
        /// The caller's trace context.
        pub trace_context: Option<String> = "trace_context",
        /// When it was enqueued.
        pub created_at: Timestamp = "created_at",
        /// When it was claimed; none again after a release.
        pub claimed_at: Option<Timestamp> = "claimed_at",
        /// When its execution was started.
        pub dispatched_at: Option<Timestamp> = "dispatched_at",
        /// When it ended.
        pub finished_at: Option<Timestamp> = "finished_at",
    }
}

/// Reads the reason of a failure; none where its name is not known.
fn failure_reason<R: RecordRow>(row: &R) -> std::result::Result<Option<FailureReason>, R::Error> {
    let name = row.text("failure_reason")?;
    Ok(name.and_then(|name| name.parse().ok()))
}

impl Request {
    /// The row that an enqueue at this moment inserts, pinned to that version.
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
            status: RequestStatus::Pending,
            priority: new.priority,
            params: new.params.clone(),
            run_at: new.run_at.unwrap_or(now),
            idempotency_key: new.idempotency.as_ref().map(|held| held.key.clone()),
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
            created_at: now,
            claimed_at: None,
            dispatched_at: None,
            finished_at: None,
        }
    }

    /// The row that a redrive of this request at that moment inserts: with all that was given, but for its time and its key.
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

/// Since when the oldest requests have been where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oldest {
    /// As of when, by the store's clock.
    pub at: Timestamp,
    /// Since when the oldest PENDING one could have been claimed; none if none is due.
    pub pending: Option<Timestamp>,
    /// Since when the first in a line has been due whose workspace has room for it; none if there is none.
    pub startable: Option<Timestamp>,
    /// When the oldest CLAIMED one was claimed.
    pub claimed: Option<Timestamp>,
    /// When the oldest DISPATCHED one was dispatched.
    pub dispatched: Option<Timestamp>,
}

/// What settling found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Requests that became due.
    pub due: u64,
    /// When the next waiting request becomes due.
    pub next_due: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_core::JsonText;
    use std::fmt::Display;
    use uuid::Uuid;

    /// A row of one text, or one without the column.
    struct Row(std::result::Result<Option<&'static str>, ()>);

    impl RecordRow for Row {
        type Error = ();

        fn integer(&self, _: &str) -> std::result::Result<Option<i64>, ()> {
            Err(())
        }
        fn float(&self, _: &str) -> std::result::Result<Option<f64>, ()> {
            Err(())
        }
        fn text(&self, _: &str) -> std::result::Result<Option<String>, ()> {
            self.0.map(|text| text.map(str::to_owned))
        }
        fn uuid(&self, _: &str) -> std::result::Result<Option<Uuid>, ()> {
            Err(())
        }
        fn time(&self, _: &str) -> std::result::Result<Option<Timestamp>, ()> {
            Err(())
        }
        fn json(&self, _: &str) -> std::result::Result<Option<Value>, ()> {
            Err(())
        }
        fn json_text(&self, _: &str) -> std::result::Result<Option<JsonText>, ()> {
            Err(())
        }
        fn invalid(&self, _: &str, _: &dyn Display) {}
    }

    #[test]
    fn only_a_reason_that_is_not_known_reads_as_none() {
        let known = failure_reason(&Row(Ok(Some("timed_out"))));
        assert_eq!(known, Ok(Some(FailureReason::TimedOut)));
        assert_eq!(
            failure_reason(&Row(Ok(Some("of_a_newer_program")))),
            Ok(None)
        );
        assert_eq!(failure_reason(&Row(Ok(None))), Ok(None));
        assert_eq!(failure_reason(&Row(Err(()))), Err(()), "no such column");
    }
}
