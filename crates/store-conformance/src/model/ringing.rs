//! Operations of the model that wake someone: done to plain maps, then rung for.

use super::Model;
use leasehold_core::limits::SWEEP_MAX_BATCH;
use leasehold_core::{RequestId, WorkspaceId};
use leasehold_store::execution::{ExecutionFinish, ExecutionFinished};
use leasehold_store::request::{
    Cancel, Cancelled, ClaimRef, Dispatched, Enqueue, Enqueued, Fail, Recovered, Redrive,
    RedriveMany, Redriven, Release, Released,
};
use leasehold_store::wake::Wake;
use leasehold_store::workspace::{Workspace, WorkspaceChange};
use leasehold_store::{Result, fresh_id};

impl Model {
    pub(super) fn enqueue(&self, enqueue: &Enqueue) -> Result<Enqueued> {
        let enqueued = self.state().enqueue(enqueue, self.now())?;
        let inserts =
            matches!(&enqueued, Enqueued::All(all) if all.iter().any(|answer| answer.inserted));
        self.bells.ring_for_work(inserts);
        Ok(enqueued)
    }

    pub(super) fn delete_workspace(&self, id: WorkspaceId) -> bool {
        let deleted = self.state().delete_workspace(id, self.now());
        self.bells.ring_for_work(deleted);
        deleted
    }

    pub(super) fn dispatched(&self, owner: &str, claims: &[ClaimRef]) -> Vec<Dispatched> {
        let (mut state, now) = (self.state(), self.now());
        let marks = claims
            .iter()
            .map(|claim| state.dispatched(owner, claim, now));
        let marks: Vec<Dispatched> = marks.collect();
        if marks.contains(&Dispatched::Cancelling) {
            self.bells.ring(Wake::Cancel);
        }
        marks
    }

    pub(super) fn release(&self, owner: &str, releases: &[Release]) -> Vec<Released> {
        let (mut state, now) = (self.state(), self.now());
        let backs = releases.iter().map(|back| state.release(owner, back, now));
        let backs: Vec<Released> = backs.collect();
        self.bells
            .ring_for_work(backs.iter().any(|back| *back != Released::LeaseLost));
        backs
    }

    pub(super) fn recover(&self, by: &str, limit: u32) -> Vec<Recovered> {
        let (mut state, now) = (self.state(), self.now());
        let mut expired = state.expired(now);
        expired.truncate(limit.min(SWEEP_MAX_BATCH) as usize);
        self.bells.ring_for_work(!expired.is_empty());
        state.recover(by, &expired, now)
    }

    pub(super) fn cancel(&self, cancel: &Cancel) -> Cancelled {
        let (mut state, now) = (self.state(), self.now());
        let cancelled = state.cancel(cancel, now);
        match cancelled {
            Cancelled::Wished(_) => self.bells.ring(Wake::Work),
            Cancelled::Running(_) => self.bells.ring(Wake::Cancel),
            Cancelled::Cancelled | Cancelled::AlreadyFinished | Cancelled::NotFound => {}
        }
        cancelled
    }

    pub(super) fn redrive(&self, redrive: &Redrive) -> Redriven {
        let redriven = self.state().redrive(redrive, self.now());
        self.bells
            .ring_for_work(matches!(redriven, Redriven::Enqueued(_)));
        redriven
    }

    pub(super) fn finish(&self, by: &str, finishes: &[ExecutionFinish]) -> Vec<ExecutionFinished> {
        let (mut state, now) = (self.state(), self.now());
        let ends = finishes.iter().map(|finish| state.finish(by, finish, now));
        let ends: Vec<ExecutionFinished> = ends.collect();
        let ended = |end: &ExecutionFinished| matches!(end, ExecutionFinished::Finished { .. });
        self.bells.ring_for_work(ends.iter().any(ended));
        ends
    }

    pub(super) fn redrive_many(&self, redrive: &RedriveMany) -> Vec<(RequestId, RequestId)> {
        let now = self.now();
        let redriven = self.state().redrive_many(redrive, now, &mut |_| fresh_id());
        self.bells.ring_for_work(!redriven.is_empty());
        redriven
    }

    pub(super) fn fail(&self, owner: &str, fail: &Fail) -> bool {
        let failed = self.state().give_up(owner, fail, self.now());
        self.bells.ring_for_work(failed);
        failed
    }

    pub(super) fn update(
        &self,
        id: WorkspaceId,
        change: &WorkspaceChange,
    ) -> Result<Option<Workspace>> {
        let updated = self.state().update_workspace(id, change)?;
        self.bells.ring_for_work(updated.is_some());
        Ok(updated)
    }
}
