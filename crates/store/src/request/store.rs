//! The storage of requests, as a trait: what a store promises about each of their transitions. Knows no database.

use super::{
    Cancel, CancelWish, Cancelled, Claim, ClaimOutcome, ClaimRef, Counts, Dispatched, Enqueue,
    Enqueued, Fail, Oldest, Recovered, Redrive, RedriveMany, Redriven, Release, Released, Request,
    RequestFilter, Settled,
};
use crate::change::Event;
use crate::store_trait::store_trait;
use crate::{Page, Result};
use leasehold_core::{RequestId, WorkspaceId};
use std::time::Duration;

store_trait! {
    /// Requests: from being enqueued to their end.
    pub trait RequestStore, observed by RequestObserver {
        /// Inserts PENDING requests, all or none, each pinned to its definition's current version. A request
        /// whose idempotency key is held in the workspace is not inserted: the holder is returned in its place if
        /// definition and params are the same, else the whole call is a conflict. A request checked against a version that
        /// is no longer current refuses the call as well. Answers are in the order asked.
        /// Exact under races, and free of deadlock whatever the order of keys.
        async fn request_enqueue(&self, enqueue: &Enqueue) -> Result<Enqueued>;

        /// Admits up to `batch` requests in one transaction: workspaces in turn, one admission each a turn; within
        /// one, priority first, then oldest. Each gets a lease, the next fencing token and a RUNNING execution,
        /// which is its slot. Requests that kept their execution come first and take no second slot. A request whose
        /// workspace, definition or version is gone fails with its reason and takes none.
        async fn request_claim(&self, claim: &Claim) -> Result<ClaimOutcome>;

        /// Makes room and work visible to the next claim: what became due, what was enqueued, what was freed.
        /// [`Self::request_claim`] does it itself. Says when the next waiting request becomes due.
        async fn request_settle(&self) -> Result<Settled>;

        /// Extends the leases that the owner still holds with these tokens, and returns which those are.
        async fn request_renew(
            &self,
            owner: &str,
            claims: &[ClaimRef],
            lease: Duration,
        ) -> Result<Vec<RequestId>>;

        /// CLAIMED → DISPATCHED for each claim still held. Answers are in the order asked.
        async fn request_dispatched(&self, owner: &str, claims: &[ClaimRef])
        -> Result<Vec<Dispatched>>;

        /// CLAIMED → PENDING for each claim still held, counted and delayed as its kind says, or → FAILED where
        /// the kind says it is exhausted or a cancellation was wished and nothing was started. Answers in order.
        async fn request_release(&self, owner: &str, releases: &[Release]) -> Result<Vec<Released>>;

        /// CLAIMED → FAILED for a claim still held whose execution was definitely not started: it is deleted and
        /// its slot is free. False if the lease is lost.
        async fn request_fail(&self, owner: &str, fail: &Fail) -> Result<bool>;

        /// CLAIMED → PENDING for up to `limit` requests whose lease has expired. Execution and slot stay with them:
        /// nobody knows whether the start was sent. Idempotent, safe from everywhere at once.
        async fn request_recover(&self, by: &str, limit: u32) -> Result<Vec<Recovered>>;

        /// Fails a PENDING request without an execution at once; for any other open one stores the wish. One whose
        /// start is unknown becomes due at once, so that whoever claims it can give it up.
        async fn request_cancel(&self, cancel: &Cancel) -> Result<Cancelled>;

        /// Wishes to cancel DISPATCHED requests that no engine has been told of, oldest first.
        async fn request_cancel_list(&self, limit: u32) -> Result<Vec<CancelWish>>;

        /// Remembers that the engine was told of these wishes. One that asks for more meanwhile (`force`) stays listed.
        async fn request_cancel_told(&self, wishes: &[CancelWish]) -> Result<()>;

        /// Inserts a new request like a FAILED one, with `redrive_of`. At most one live redrive of each.
        async fn request_redrive(&self, redrive: &Redrive) -> Result<Redriven>;

        /// Redrives FAILED requests that were never redriven, oldest first; pairs of failed and new.
        async fn request_redrive_many(
            &self,
            redrive: &RedriveMany,
        ) -> Result<Vec<(RequestId, RequestId)>>;

        /// The request.
        async fn request_get(&self, workspace: WorkspaceId, id: RequestId) -> Result<Option<Request>>;

        /// The request, whichever workspace's it is.
        async fn request_find(&self, id: RequestId) -> Result<Option<Request>>;

        /// Requests that pass the filter, newest first.
        async fn request_list(
            &self,
            filter: &RequestFilter,
            page: Page<RequestId>,
        ) -> Result<Vec<Request>>;

        /// How many requests the workspace has in each status: exact, whatever the backlog.
        async fn request_counts(&self, workspace: WorkspaceId) -> Result<Counts>;

        /// Since when the oldest request of any workspace, deleted and paused ones too, has been PENDING and due, CLAIMED, and DISPATCHED; the last to within a
        /// second. It is read from what is open, never from history. Where a line begins with more than a hundred requests that were scheduled, given
        /// back or taken back, the age of one behind them is an estimate, ordinarily low by an eighth at most, and so it may be with what was dispatched
        /// before the hundred that its workspace admitted first. And since when the first in a line has been due that could be admitted now, as far as claims know.
        async fn request_oldest(&self) -> Result<Oldest>;

        /// Every transition of the request, in order.
        async fn request_timeline(&self, workspace: WorkspaceId, id: RequestId) -> Result<Vec<Event>>;

        /// How many requests of its workspace a claim takes before this one, counted up to `up_to`; none if it is not waiting, not due
        /// or has an execution already.
        async fn request_place(
            &self,
            workspace: WorkspaceId,
            id: RequestId,
            up_to: u32,
        ) -> Result<Option<u32>>;
    }
}
