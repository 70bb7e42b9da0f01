//! The operations of a claim holder in the model (renew, dispatch, release, fail), and recovery.

use super::state::State;
use crate::factory::known;
use leasehold_core::retry::{RetryDecision, decide_retry};
use leasehold_core::{FailureReason, RequestId, RequestStatus, Timestamp};
use leasehold_store::request::{
    CRASHED, ClaimRef, Crash, CrashedRequest, Dispatched, Fail, Recovered, Release, ReleaseKind,
    Released,
};
use std::time::Duration;

impl State {
    pub(super) fn holds(&self, owner: &str, claim: &ClaimRef) -> bool {
        self.requests.get(&claim.request).is_some_and(|row| {
            row.request.status == RequestStatus::Claimed
                && row.request.claimed_by.as_deref() == Some(owner)
                && row.token == claim.token
        })
    }

    pub(super) fn renew(
        &mut self,
        owner: &str,
        claims: &[ClaimRef],
        lease: Duration,
        now: Timestamp,
    ) -> Vec<RequestId> {
        let held = claims.iter().filter(|claim| self.holds(owner, claim));
        let held: Vec<RequestId> = held.map(|claim| claim.request).collect();
        for id in &held {
            if let Some(row) = self.requests.get_mut(id) {
                row.request.lease_expires_at = Some(now + lease);
            }
        }
        held
    }

    pub(super) fn dispatched(
        &mut self,
        owner: &str,
        claim: &ClaimRef,
        now: Timestamp,
    ) -> Dispatched {
        if self.holds(owner, claim) {
            self.step(claim.request, RequestStatus::Dispatched, now, owner, None);
            if let Some(row) = self.requests.get_mut(&claim.request) {
                row.request.dispatched_at = Some(now);
                (row.crashes, row.crashed_process) = Default::default();
            }
            return self.marked(claim.request);
        }
        match self.requests.get(&claim.request) {
            Some(row) if known(&row.request.status).is_finished() => Dispatched::AlreadyFinished,
            Some(row)
                if row.request.status == RequestStatus::Dispatched && row.token == claim.token =>
            {
                self.marked(claim.request)
            }
            _ => Dispatched::LeaseLost,
        }
    }

    /// The outcome of a mark of a DISPATCHED request.
    fn marked(&self, id: RequestId) -> Dispatched {
        match self.requests.get(&id) {
            Some(row) if row.request.cancel_requested_at.is_some() => Dispatched::Cancelling,
            _ => Dispatched::Dispatched,
        }
    }

    pub(super) fn release(&mut self, owner: &str, release: &Release, now: Timestamp) -> Released {
        if !self.holds(owner, &release.claim) {
            return Released::LeaseLost;
        }
        let id = release.claim.request;
        let Some(row) = self.requests.get_mut(&id) else {
            return Released::LeaseLost;
        };
        row.request.attempt_count += 1;
        if let Some(error) = &release.error {
            row.request.last_error = Some(error.clone());
        }
        let cancel_requested = row.request.cancel_requested_at.is_some();
        let (word, exhausted) = match release.kind {
            ReleaseKind::Refused { max_attempts } => {
                row.request.dispatch_failures += 1;
                let after = decide_retry(row.request.dispatch_failures, max_attempts);
                ("refused", after == RetryDecision::Exhausted)
            }
            ReleaseKind::Unknown => ("unknown", false),
            ReleaseKind::NotStarted => ("not_started", false),
        };
        let definite = release.kind != ReleaseKind::Unknown;
        if definite {
            self.drop_execution(id);
        }
        if definite && cancel_requested {
            self.fail(id, FailureReason::Cancelled, now, owner);
            return Released::Cancelled;
        }
        if exhausted {
            self.fail(id, FailureReason::DispatchExhausted, now, owner);
            return Released::Exhausted;
        }
        self.step(id, RequestStatus::Pending, now, owner, Some(word));
        if let Some(row) = self.requests.get_mut(&id) {
            row.request.run_at = now + release.delay;
            row.waits = release.delay > Duration::ZERO;
        }
        Released::Pending
    }

    pub(super) fn fail_claim(&mut self, owner: &str, fail: &Fail, now: Timestamp) -> bool {
        if !self.holds(owner, &fail.claim) {
            return false;
        }
        let id = fail.claim.request;
        if let Some(row) = self.requests.get_mut(&id) {
            row.request.attempt_count += 1;
            if let Some(error) = &fail.error {
                row.request.last_error = Some(error.clone());
            }
        }
        self.drop_execution(id);
        self.fail(id, fail.reason, now, owner);
        true
    }

    /// Notes a crash on the open requests of its executions.
    pub(super) fn note_crash(&mut self, crash: &Crash) -> Vec<CrashedRequest> {
        let mut found = Vec::new();
        for execution in &crash.executions {
            let row = self.requests.values_mut().find(|row| {
                row.request.execution == Some(*execution)
                    && !known(&row.request.status).is_finished()
            });
            let Some(row) = row else { continue };
            if row.crashed_process.as_ref() != Some(&crash.process) {
                row.crashes = row.crashes.after(crash.is_alone());
                row.crashed_process = Some(crash.process.clone());
            }
            let request = &mut row.request;
            request.last_error = Some(CRASHED.to_owned());
            found.push(CrashedRequest {
                id: request.id,
                workspace: request.workspace,
                definition: request.definition,
                version: request.version,
                execution: *execution,
                status: request.status.clone(),
                priority: request.priority,
                params: request.params.clone(),
                trace_context: request.trace_context.clone(),
                crashes: row.crashes,
            });
        }
        found
    }

    /// Claims whose lease has expired.
    pub(super) fn expired(&self, now: Timestamp) -> Vec<RequestId> {
        let all = self.requests.values().map(|row| &row.request);
        all.filter(|r| r.lease_expires_at.is_some_and(|end| end <= now))
            .map(|r| r.id)
            .collect()
    }

    pub(super) fn recover(
        &mut self,
        by: &str,
        expired: &[RequestId],
        now: Timestamp,
    ) -> Vec<Recovered> {
        let mut recovered = Vec::new();
        for id in expired {
            let reason = Some("lease_expired");
            self.step(*id, RequestStatus::Pending, now, by, reason);
            let Some(row) = self.requests.get_mut(id) else {
                continue;
            };
            row.request.attempt_count += 1;
            recovered.extend(row.request.execution.map(|execution| Recovered {
                request: *id,
                workspace: row.request.workspace,
                execution,
            }));
        }
        recovered
    }
}
