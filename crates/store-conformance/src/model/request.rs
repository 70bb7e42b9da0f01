//! Requests in the model: each method applies one operation to the state and sends notifications. Decides nothing itself.

use super::Model;
use async_trait::async_trait;
use leasehold_core::limits::SWEEP_MAX_BATCH;
use leasehold_core::{RequestId, WorkspaceId};
use leasehold_store::change::Event;
use leasehold_store::notification::Notification;
use leasehold_store::request::{
    Cancel, CancelRequest, Cancelled, Claim, ClaimOutcome, ClaimRef, Counts, Crash, CrashedRequest,
    Dispatched, Enqueue, Enqueued, Fail, KeyHolder, Oldest, Promoted, Recovered, Redrive,
    RedriveMany, Redriven, Release, Released, Request, RequestFilter, RequestStore,
    RequestsRenewed,
};
use leasehold_store::{Page, Result, fresh_id};
use std::time::Duration;

#[async_trait]
impl RequestStore for Model {
    async fn request_enqueue(&self, enqueue: &Enqueue) -> Result<Enqueued> {
        let enqueued = self.state().enqueue(enqueue, self.now())?;
        let inserts =
            matches!(&enqueued, Enqueued::All(all) if all.iter().any(|answer| answer.inserted));
        self.notifiers.notify_work(inserts);
        Ok(enqueued)
    }

    async fn request_key_holders(&self, enqueue: &Enqueue) -> Result<Vec<Option<KeyHolder>>> {
        let (state, now) = (self.state(), self.now());
        let holder = |new| state.current_key_holder(enqueue.workspace, new, now);
        Ok(enqueue.requests.iter().map(holder).collect())
    }

    async fn request_claim(&self, claim: &Claim) -> Result<ClaimOutcome> {
        let now = self.now();
        Ok(self.state().claim(claim, now, &mut |_| fresh_id()))
    }

    async fn request_promote_due(&self) -> Result<Promoted> {
        Ok(self.state().promote_due(self.now()))
    }

    async fn request_renew(
        &self,
        owner: &str,
        claims: &[ClaimRef],
        lease: Duration,
    ) -> Result<RequestsRenewed> {
        Ok(RequestsRenewed {
            renewed: self.state().renew(owner, claims, lease, self.now()),
            busy: Vec::new(),
        })
    }

    async fn request_dispatched(
        &self,
        owner: &str,
        claims: &[ClaimRef],
    ) -> Result<Vec<Dispatched>> {
        let (mut state, now) = (self.state(), self.now());
        let outcomes = claims
            .iter()
            .map(|claim| state.dispatched(owner, claim, now));
        let outcomes: Vec<Dispatched> = outcomes.collect();
        if outcomes.contains(&Dispatched::Cancelling) {
            self.notifiers.notify(Notification::Cancel);
        }
        Ok(outcomes)
    }

    async fn request_release(&self, owner: &str, releases: &[Release]) -> Result<Vec<Released>> {
        let (mut state, now) = (self.state(), self.now());
        let outcomes = releases
            .iter()
            .map(|release| state.release(owner, release, now));
        let outcomes: Vec<Released> = outcomes.collect();
        self.notifiers.notify_work(
            outcomes
                .iter()
                .any(|outcome| *outcome != Released::LeaseLost),
        );
        Ok(outcomes)
    }

    async fn request_fail(&self, owner: &str, fail: &Fail) -> Result<bool> {
        let failed = self.state().fail_claim(owner, fail, self.now());
        self.notifiers.notify_work(failed);
        Ok(failed)
    }

    async fn request_recover(&self, by: &str, limit: u32) -> Result<Vec<Recovered>> {
        let (mut state, now) = (self.state(), self.now());
        let mut expired = state.expired(now);
        expired.truncate(limit.min(SWEEP_MAX_BATCH) as usize);
        self.notifiers.notify_work(!expired.is_empty());
        Ok(state.recover(by, &expired, now))
    }

    async fn request_note_crash(&self, crash: &Crash) -> Result<Vec<CrashedRequest>> {
        Ok(self.state().note_crash(crash))
    }

    async fn request_cancel(&self, cancel: &Cancel) -> Result<Cancelled> {
        let (mut state, now) = (self.state(), self.now());
        let cancelled = state.cancel(cancel, now);
        match cancelled {
            Cancelled::Requested(_) => self.notifiers.notify(Notification::Work),
            Cancelled::Running(_) => self.notifiers.notify(Notification::Cancel),
            Cancelled::Cancelled | Cancelled::AlreadyFinished | Cancelled::NotFound => {}
        }
        Ok(cancelled)
    }

    async fn request_cancel_list(&self, limit: u32) -> Result<Vec<CancelRequest>> {
        let mut unacknowledged = self.state().unacknowledged();
        unacknowledged.truncate(limit.min(SWEEP_MAX_BATCH) as usize);
        Ok(unacknowledged)
    }

    async fn request_cancel_ack(&self, requests: &[CancelRequest]) -> Result<()> {
        let mut state = self.state();
        requests
            .iter()
            .for_each(|request| state.acknowledge(request));
        Ok(())
    }

    async fn request_cancel_repeat(&self, requests: &[RequestId]) -> Result<u64> {
        Ok(self.state().repeat_cancels(requests))
    }

    async fn request_redrive(&self, redrive: &Redrive) -> Result<Redriven> {
        let redriven = self.state().redrive(redrive, self.now());
        self.notifiers
            .notify_work(matches!(redriven, Redriven::Enqueued(_)));
        Ok(redriven)
    }

    async fn request_redrive_many(
        &self,
        redrive: &RedriveMany,
    ) -> Result<Vec<(RequestId, RequestId)>> {
        let now = self.now();
        let redriven = self.state().redrive_many(redrive, now, &mut |_| fresh_id());
        self.notifiers.notify_work(!redriven.is_empty());
        Ok(redriven)
    }

    async fn request_get(&self, workspace: WorkspaceId, id: RequestId) -> Result<Option<Request>> {
        let state = self.state();
        Ok(state.own(workspace, id).map(|row| row.request.clone()))
    }

    async fn request_find(&self, id: RequestId) -> Result<Option<Request>> {
        let state = self.state();
        Ok(state.requests.get(&id).map(|row| row.request.clone()))
    }

    async fn request_list(
        &self,
        filter: &RequestFilter,
        at: Page<RequestId>,
    ) -> Result<Vec<Request>> {
        Ok(self.state().list_requests(filter, at))
    }

    async fn request_counts(&self, workspace: WorkspaceId) -> Result<Counts> {
        Ok(self.state().counts(workspace))
    }

    async fn request_oldest(&self) -> Result<Oldest> {
        Ok(self.state().oldest(self.now()))
    }

    async fn request_timeline(&self, workspace: WorkspaceId, id: RequestId) -> Result<Vec<Event>> {
        Ok(self.state().timeline(workspace, id))
    }

    async fn request_position(
        &self,
        workspace: WorkspaceId,
        id: RequestId,
        up_to: u32,
    ) -> Result<Option<u32>> {
        let position = self.state().request_position(workspace, id, self.now());
        Ok(position.map(|n| u32::try_from(n).map_or(up_to, |n| n.min(up_to))))
    }
}
