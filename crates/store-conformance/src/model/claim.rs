//! The model's claim: unknown starts first, then workspaces in turn, one admission each.

use super::state::State;
use leasehold_core::limits::CLAIM_MAX_BATCH;
use leasehold_core::{
    ExecutionId, ExecutionStatus, FailureReason, RequestId, RequestStatus, Timestamp, WorkspaceId,
};
use leasehold_store::execution::Execution;
use leasehold_store::request::{
    AtCapacity, Claim, ClaimOutcome, Claimed, ClaimedRequest, ExecutionOrigin, Promoted, Rejected,
};
use std::collections::BTreeSet;
use std::time::Duration;

impl State {
    /// Claims requests; `execution` chooses the id of a new execution.
    pub(super) fn claim(
        &mut self,
        claim: &Claim,
        now: Timestamp,
        execution: &mut dyn FnMut(RequestId) -> ExecutionId,
    ) -> ClaimOutcome {
        if let Some(token) = &claim.lock {
            let held = self.locks.get(&token.name).is_some_and(|lock| {
                lock.owner == token.owner && lock.token == token.token && lock.until > now
            });
            if !held {
                return ClaimOutcome::LockLost;
            }
        }
        let mut claimed = Claimed {
            next_due_in: self.promote_due(now).next_due.map(|at| until(now, at)),
            ..Claimed::default()
        };
        let batch = claim.batch.min(CLAIM_MAX_BATCH) as usize;
        let kept_max = claim.kept_max.map_or(batch, |max| batch.min(max as usize));
        while claimed.requests.len() < kept_max {
            let Some(id) = self.next_kept(now) else { break };
            let taken = self.take(id, claim, now, ExecutionOrigin::Kept);
            claimed.requests.extend(taken);
        }
        while claimed.requests.len() + claimed.rejected.len() < batch {
            let Some((workspace, id)) = self.next_turn(now) else {
                break;
            };
            self.admissions += 1;
            if let Some(row) = self.workspaces.get_mut(&workspace) {
                row.turn = self.admissions;
            }
            if let Some(reason) = self.missing(workspace, id) {
                self.reject(id, reason, now, &claim.owner);
                claimed.rejected.push(Rejected {
                    request: id,
                    workspace,
                    reason,
                });
            } else {
                self.admit(id, execution(id), now);
                let taken = self.take(id, claim, now, ExecutionOrigin::Created);
                claimed.requests.extend(taken);
            }
        }
        claimed.more = self.next_kept(now).is_some() || self.next_turn(now).is_some();
        claimed.at_capacity = self.filled(&claimed.requests, now);
        ClaimOutcome::Claimed(claimed)
    }

    /// The workspaces whose last slot these admissions took while more requests are pending, by id.
    pub(super) fn filled(&self, admitted: &[ClaimedRequest], now: Timestamp) -> Vec<AtCapacity> {
        let new = admitted
            .iter()
            .filter(|r| r.origin != ExecutionOrigin::Kept);
        let workspaces: BTreeSet<WorkspaceId> = new.map(|r| r.workspace).collect();
        let filled = workspaces.into_iter().filter_map(|workspace| {
            let slots = self.slots(workspace)?;
            let full = slots.in_use >= slots.limit && self.best(workspace, now).is_some();
            (full && self.exists(workspace)).then_some(AtCapacity {
                workspace,
                active: slots.in_use,
                limit: slots.limit,
            })
        });
        filled.collect()
    }

    fn is_kept(&self, execution: Option<ExecutionId>) -> bool {
        execution
            .and_then(|id| self.executions.get(&id))
            .is_some_and(|e| e.status == ExecutionStatus::Running)
    }

    /// The oldest due request with a kept execution.
    pub(super) fn next_kept(&self, now: Timestamp) -> Option<RequestId> {
        let due = self.requests.values().map(|row| &row.request).filter(|r| {
            r.status == RequestStatus::Pending && r.run_at <= now && self.is_kept(r.execution)
        });
        due.min_by_key(|r| (r.created_at, r.id)).map(|r| r.id)
    }

    /// The ready workspace with the oldest last turn, and its first request.
    pub(super) fn next_turn(&self, now: Timestamp) -> Option<(WorkspaceId, RequestId)> {
        let all = self.workspaces.values();
        let ready = all.filter(|row| self.ready(row.workspace.id, now));
        let next = ready.min_by_key(|row| (row.turn, row.workspace.id))?;
        let id = next.workspace.id;
        self.best(id, now).map(|request| (id, request))
    }

    /// Whether a workspace has a due request and a free slot. A deleted one needs no slot, since its requests are rejected.
    pub(super) fn ready(&self, workspace: WorkspaceId, now: Timestamp) -> bool {
        let Some(row) = self.workspaces.get(&workspace) else {
            return false;
        };
        let has_slot = self.slots(workspace).is_some_and(|s| s.in_use < s.limit);
        let open = row.workspace.deleted_at.is_some() || (!row.workspace.paused && has_slot);
        open && self.best(workspace, now).is_some()
    }

    /// Fails a request that cannot be admitted; counts an attempt.
    pub(super) fn reject(
        &mut self,
        id: RequestId,
        reason: FailureReason,
        now: Timestamp,
        by: &str,
    ) {
        if let Some(row) = self.requests.get_mut(&id) {
            row.request.attempt_count += 1;
        }
        self.fail(id, reason, now, by);
    }

    /// The first request in a workspace's line.
    pub(super) fn best(&self, workspace: WorkspaceId, now: Timestamp) -> Option<RequestId> {
        let due = self.requests.values().map(|row| &row.request).filter(|r| {
            r.workspace == workspace
                && r.status == RequestStatus::Pending
                && r.run_at <= now
                && !self.is_kept(r.execution)
        });
        due.min_by_key(|r| (-r.priority, r.created_at, r.id))
            .map(|r| r.id)
    }

    pub(super) fn missing(&self, workspace: WorkspaceId, id: RequestId) -> Option<FailureReason> {
        let request = &self.requests.get(&id)?.request;
        if !self.exists(workspace) {
            Some(FailureReason::WorkspaceNotFound)
        } else if self.deleted_definitions.contains(&request.definition)
            || !self.definitions.contains_key(&request.definition)
        {
            Some(FailureReason::DefinitionNotFound)
        } else if !self.versions.contains_key(&request.version) {
            Some(FailureReason::VersionNotFound)
        } else {
            None
        }
    }

    pub(super) fn admit(&mut self, id: RequestId, execution: ExecutionId, now: Timestamp) {
        let Some(row) = self.requests.get_mut(&id) else {
            return;
        };
        row.request.execution = Some(execution);
        let made = Execution {
            id: execution,
            workspace: row.request.workspace,
            request: id,
            definition: row.request.definition,
            version: row.request.version,
            status: ExecutionStatus::Running.into(),
            admission: self.admissions,
            started_at: now,
            finished_at: None,
            error: None,
        };
        self.executions.insert(execution, made);
    }

    pub(super) fn take(
        &mut self,
        id: RequestId,
        claim: &Claim,
        now: Timestamp,
        origin: ExecutionOrigin,
    ) -> Option<ClaimedRequest> {
        self.step(id, RequestStatus::Claimed, now, &claim.owner, None);
        let row = self.requests.get_mut(&id)?;
        row.token += 1;
        let lease_expires_at = now + claim.lease;
        row.request.claimed_by = Some(claim.owner.clone());
        row.request.claimed_at = Some(now);
        row.request.lease_expires_at = Some(lease_expires_at);
        let execution = row.request.execution?;
        let record = self.executions.get_mut(&execution)?;
        record.started_at = now;
        record.error = None;
        let r = &row.request;
        Some(ClaimedRequest {
            id,
            token: row.token,
            workspace: r.workspace,
            definition: r.definition,
            version: r.version,
            execution,
            origin,
            priority: r.priority,
            params: r.params.clone(),
            unreadable: None,
            attempt_count: r.attempt_count,
            dispatch_failures: r.dispatch_failures,
            cancel_requested: r.cancel_requested_at.is_some(),
            crashes: row.crashes,
            trace_context: r.trace_context.clone(),
            created_at: r.created_at,
            run_at: r.run_at,
            lease_expires_at,
        })
    }

    /// Moves due requests into the line and returns when the next request becomes due.
    pub(super) fn promote_due(&mut self, now: Timestamp) -> Promoted {
        let mut promoted = Promoted::default();
        for row in self.requests.values_mut() {
            if row.request.status != RequestStatus::Pending || !row.waits {
                continue;
            }
            if row.request.run_at <= now {
                row.waits = false;
                promoted.due += 1;
            } else {
                let next = promoted.next_due.get_or_insert(row.request.run_at);
                *next = row.request.run_at.min(*next);
            }
        }
        promoted
    }
}

/// The time from `now` until `at`; zero if it has passed.
pub(super) fn until(now: Timestamp, at: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(now)).unwrap_or_default()
}
