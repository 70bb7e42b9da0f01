//! The storage trait of requests and its guarantees. Knows no database.

use super::{
    Cancel, CancelRequest, Cancelled, Claim, ClaimOutcome, ClaimRef, Counts, Crash, CrashedRequest,
    Dispatched, Enqueue, Enqueued, Fail, KeyHolder, Oldest, Promoted, Recovered, Redrive,
    RedriveMany, Redriven, Release, Released, Request, RequestFilter, RequestsRenewed,
};
use crate::change::Event;
use crate::store_trait::store_trait;
use crate::{Page, Result};
use leasehold_core::{RequestId, WorkspaceId};
use std::time::Duration;

store_trait! {
    /// Requests, from enqueue to end.
    pub trait RequestStore, observed by RequestObserver {
        /// Inserts PENDING requests, all or none, each pinned to its definition's current version. A request
        /// whose idempotency key is held in the workspace is not inserted: the result names the holder if
        /// definition and params are the same, else the whole call is a conflict. A request whose params were validated against a version that
        /// is no longer current fails the call as well. Results are in the order of the call.
        /// Exact under concurrent calls, and free of deadlocks for any order of keys.
        async fn request_enqueue(&self, enqueue: &Enqueue) -> Result<Enqueued>;

        /// Returns for each request of the call which request holds its idempotency key now, in the order of the call; none if its key is
        /// free, and for a request without a key. Only reads, and waits for no other transaction.
        async fn request_key_holders(&self, enqueue: &Enqueue) -> Result<Vec<Option<KeyHolder>>>;

        /// Admits up to `batch` requests in one transaction: workspaces round-robin, one admission per turn; within a
        /// workspace, highest priority first, then oldest. Each request gets a lease, the next fencing token and a RUNNING execution,
        /// which is its slot. Requests that kept their execution come first and take no second slot. A request whose
        /// workspace, definition or version is deleted fails with that reason and takes no slot.
        async fn request_claim(&self, claim: &Claim) -> Result<ClaimOutcome>;

        /// Moves requests that became due into their lines, and makes new requests and freed slots visible to the next claim.
        /// [`Self::request_claim`] does the same. Returns when the next scheduled request becomes due.
        async fn request_promote_due(&self) -> Result<Promoted>;

        /// Renews the leases that the owner still holds with these tokens. A claim whose row is locked does not delay the others.
        async fn request_renew(
            &self,
            owner: &str,
            claims: &[ClaimRef],
            lease: Duration,
        ) -> Result<RequestsRenewed>;

        /// CLAIMED → DISPATCHED for each claim still held. Outcomes are in the order of `claims`. A claim whose row is locked is `Busy` and does not delay
        /// the others.
        async fn request_dispatched(&self, owner: &str, claims: &[ClaimRef])
        -> Result<Vec<Dispatched>>;

        /// CLAIMED → PENDING for each claim still held, counted and delayed according to its kind, or → FAILED if
        /// its attempts are exhausted, or if a cancellation was requested and nothing was started. Outcomes are in the order of `releases`. A claim whose
        /// row is locked is `Busy` and does not delay the others.
        async fn request_release(&self, owner: &str, releases: &[Release]) -> Result<Vec<Released>>;

        /// CLAIMED → FAILED for a claim still held whose execution was definitely not started: deletes the execution and
        /// frees its slot. False if the lease is lost.
        async fn request_fail(&self, owner: &str, fail: &Fail) -> Result<bool>;

        /// CLAIMED → PENDING for up to `limit` requests whose lease has expired. They keep execution and slot, because
        /// the outcome of the start is unknown. Idempotent, and safe to call from several instances at once.
        async fn request_recover(&self, by: &str, limit: u32) -> Result<Vec<Recovered>>;

        /// Notes a crash on the open requests of its executions, and returns them. Idempotent: the crash of one process is noted once on a request.
        /// Counts are those of all instances together. [`Self::request_dispatched`] and a step of the graph that computes inputs reset them.
        async fn request_note_crash(&self, crash: &Crash) -> Result<Vec<CrashedRequest>>;

        /// Fails a PENDING request without an execution at once; for any other open request stores the cancel request. A request whose
        /// start is unknown becomes due at once, so that the next claimer can end it. A repeated cancel request is listed again, although the engine
        /// acknowledged the first.
        async fn request_cancel(&self, cancel: &Cancel) -> Result<Cancelled>;

        /// Lists cancel requests of DISPATCHED requests that the engine has not acknowledged, oldest first.
        async fn request_cancel_list(&self, limit: u32) -> Result<Vec<CancelRequest>>;

        /// Records that the engine acknowledged these cancel requests. One that was upgraded to `force` meanwhile stays listed.
        async fn request_cancel_ack(&self, requests: &[CancelRequest]) -> Result<()>;

        /// Lists the acknowledged cancel requests of these DISPATCHED requests again, and returns their number: the engine may have lost them, as a workflow
        /// does that continues as new. One whose row is locked is skipped.
        async fn request_cancel_repeat(&self, requests: &[RequestId]) -> Result<u64>;

        /// Inserts a copy of a FAILED request, with `redrive_of` set. At most one redrive of a request is live.
        async fn request_redrive(&self, redrive: &Redrive) -> Result<Redriven>;

        /// Redrives FAILED requests that were never redriven, oldest first; returns pairs of failed and new request. A call may redrive fewer than its limits
        /// allow. When it returns none, none are left but broken ones, which it reports, and those that other transactions have locked.
        async fn request_redrive_many(
            &self,
            redrive: &RedriveMany,
        ) -> Result<Vec<(RequestId, RequestId)>>;

        /// Returns the request.
        async fn request_get(&self, workspace: WorkspaceId, id: RequestId) -> Result<Option<Request>>;

        /// Returns the request of any workspace.
        async fn request_find(&self, id: RequestId) -> Result<Option<Request>>;

        /// Lists requests that match the filter, newest first.
        async fn request_list(
            &self,
            filter: &RequestFilter,
            page: Page<RequestId>,
        ) -> Result<Vec<Request>>;

        /// Counts the requests of a workspace by status; exact for any backlog.
        async fn request_counts(&self, workspace: WorkspaceId) -> Result<Counts>;

        /// Returns since when the oldest request of any workspace, including deleted and paused ones, has been PENDING and due, CLAIMED, and DISPATCHED (the
        /// last within a second). Reads open requests only, never history. If a line starts with more than 100 requests that were scheduled, released
        /// or recovered, the age of a request behind them is an estimate, which may underestimate by up to 12.5 %; the same holds for requests that were dispatched
        /// before the first 100 admissions of their workspace. Also returns since when the oldest request has been due that could be admitted now.
        async fn request_oldest(&self) -> Result<Oldest>;

        /// Returns every transition of the request, in order; none of a pruned request. If the first one has a status before it, earlier events have expired
        /// (see [`PruneStore::prune`](crate::prune::PruneStore::prune)).
        async fn request_timeline(&self, workspace: WorkspaceId, id: RequestId) -> Result<Vec<Event>>;

        /// Returns how many requests of its workspace are ahead of this one, counted up to `up_to`; none if it is not PENDING, not due,
        /// or already has an execution.
        async fn request_position(
            &self,
            workspace: WorkspaceId,
            id: RequestId,
            up_to: u32,
        ) -> Result<Option<u32>>;
    }
}
