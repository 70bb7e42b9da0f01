//! The model's state as plain maps, and the helpers that every operation uses. Knows no store.

use super::graph::GraphRow;
use crate::factory::known;
use leasehold_core::plan::effective_limit;
use leasehold_core::quota::{effective_max_open_bytes, effective_max_pending};
use leasehold_core::{
    AuditId, Crashes, DefinitionId, ExecutionId, ExecutionStatus, FailureReason, JsonText, KeyId,
    RequestId, RequestStatus, Timestamp, Usage, VersionId, WorkspaceId, WorkspaceQuota,
};
use leasehold_store::audit::AuditEntry;
use leasehold_store::change::Event;
use leasehold_store::definition::{Definition, Version};
use leasehold_store::execution::Execution;
use leasehold_store::installation::RecordedEngine;
use leasehold_store::instance::Instance;
use leasehold_store::key::Key;
use leasehold_store::lock::LockState;
use leasehold_store::request::{Counts, Oldest, Request};
use leasehold_store::workspace::{SlotUse, Workspace};
use leasehold_store::{Error, ErrorKind};
use std::collections::{BTreeMap, BTreeSet};

/// A workspace and its turn in the round-robin.
#[derive(Clone, Debug)]
pub(super) struct WorkspaceRow {
    pub(super) workspace: Workspace,
    pub(super) turn: i64,
}

/// A request and its fields that the trait does not expose.
#[derive(Clone, Debug)]
pub(super) struct RequestRow {
    pub(super) request: Request,
    pub(super) token: i64,
    pub(super) dedupe_until: Option<Timestamp>,
    /// PENDING and not in the line yet, because it is not due.
    pub(super) waits: bool,
    /// Whether the cancel request is forced.
    pub(super) cancel_force: bool,
    /// Whether the engine has acknowledged the cancel request.
    pub(super) cancel_acknowledged: bool,
    /// Crashes since the last computation that succeeded, and the last process that crashed.
    pub(super) crashes: Crashes,
    pub(super) crashed_process: Option<String>,
    /// What the steps of its graph were charged.
    pub(super) execution_bytes: u64,
}

/// An idempotency key that outlives its request.
#[derive(Clone, Debug)]
pub(super) struct KeptKey {
    pub(super) request: RequestId,
    pub(super) definition: DefinitionId,
    pub(super) params: JsonText,
    pub(super) dedupe_until: Timestamp,
}

/// The whole state.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) workspaces: BTreeMap<WorkspaceId, WorkspaceRow>,
    pub(super) definitions: BTreeMap<DefinitionId, Definition>,
    pub(super) deleted_definitions: BTreeSet<DefinitionId>,
    pub(super) versions: BTreeMap<VersionId, Version>,
    pub(super) requests: BTreeMap<RequestId, RequestRow>,
    pub(super) executions: BTreeMap<ExecutionId, Execution>,
    pub(super) graphs: BTreeMap<ExecutionId, GraphRow>,
    pub(super) events: BTreeMap<u64, Event>,
    pub(super) next_event: u64,
    pub(super) locks: BTreeMap<String, LockState>,
    pub(super) keys: BTreeMap<KeyId, Key>,
    pub(super) audit: BTreeMap<AuditId, AuditEntry>,
    pub(super) instances: BTreeMap<String, Instance>,
    pub(super) secret: Option<[u8; 32]>,
    pub(super) engine: Option<RecordedEngine>,
    pub(super) admissions: i64,
    /// The idempotency keys of pruned requests.
    pub(super) kept_keys: BTreeMap<(WorkspaceId, String), KeptKey>,
    /// Requests that were ever redriven, even if their redrives were pruned.
    pub(super) redriven: BTreeSet<RequestId>,
}

/// An error of a named constraint.
pub(super) fn constraint_error(constraint: &str) -> Error {
    Error::new("model", ErrorKind::Constraint(constraint.into()))
}

impl State {
    /// Moves a request and writes the event.
    pub(super) fn step(
        &mut self,
        id: RequestId,
        to: RequestStatus,
        now: Timestamp,
        by: &str,
        reason: Option<&str>,
    ) {
        let Some(row) = self.requests.get_mut(&id) else {
            return;
        };
        let from = known(&row.request.status);
        assert!(
            from.may_become(to),
            "invalid transition in the model: {from} to {to}"
        );
        row.request.status = to.into();
        if to != RequestStatus::Claimed {
            row.request.claimed_by = None;
            row.request.lease_expires_at = None;
        }
        if to == RequestStatus::Pending {
            row.request.claimed_at = None;
        }
        if to.is_finished() {
            row.request.finished_at = Some(now);
        }
        let workspace = row.request.workspace;
        self.record(id, workspace, Some(from), to, now, by, reason);
    }

    #[expect(clippy::too_many_arguments, reason = "an event has this many parts")]
    pub(super) fn record(
        &mut self,
        request: RequestId,
        workspace: WorkspaceId,
        from: Option<RequestStatus>,
        to: RequestStatus,
        at: Timestamp,
        by: &str,
        reason: Option<&str>,
    ) {
        let event = Event {
            request,
            workspace,
            from: from.map(Into::into),
            to: to.into(),
            at,
            by: by.into(),
            reason: reason.map(str::to_owned),
        };
        self.events.insert(self.next_event, event);
        self.next_event += 1;
    }

    /// Moves a request to FAILED for a reason.
    pub(super) fn fail(&mut self, id: RequestId, reason: FailureReason, now: Timestamp, by: &str) {
        self.step(id, RequestStatus::Failed, now, by, Some(reason.as_str()));
        if let Some(row) = self.requests.get_mut(&id) {
            row.request.failure_reason = Some(reason.into());
        }
    }

    /// Deletes the execution of a request that was definitely not started.
    pub(super) fn drop_execution(&mut self, id: RequestId) {
        if let Some(row) = self.requests.get_mut(&id)
            && let Some(execution) = row.request.execution.take()
        {
            self.executions.remove(&execution);
            self.graphs.remove(&execution);
        }
    }

    /// The request of a workspace.
    pub(super) fn own(&self, workspace: WorkspaceId, id: RequestId) -> Option<&RequestRow> {
        let row = self.requests.get(&id)?;
        (row.request.workspace == workspace).then_some(row)
    }

    /// Limit and use of a workspace's slots.
    pub(super) fn slots(&self, workspace: WorkspaceId) -> Option<SlotUse> {
        let row = &self.workspaces.get(&workspace)?.workspace;
        let running = self
            .executions
            .values()
            .filter(|e| e.workspace == workspace && e.status == ExecutionStatus::Running);
        Some(SlotUse {
            limit: effective_limit(row.plan, row.limit_override).unwrap_or(0),
            in_use: u32::try_from(running.count()).unwrap_or(u32::MAX),
        })
    }

    /// The quotas of a workspace and what its requests use of them.
    pub(super) fn quota(&self, workspace: WorkspaceId) -> Option<WorkspaceQuota> {
        let row = &self.workspaces.get(&workspace)?.workspace;
        let open = self.requests.values().filter(|row| {
            row.request.workspace == workspace && !known(&row.request.status).is_finished()
        });
        Some(WorkspaceQuota {
            max_pending: effective_max_pending(row.max_pending_override),
            max_open_bytes: effective_max_open_bytes(row.plan, row.max_open_bytes_override),
            used: Usage {
                requests: self.counts(workspace).pending,
                bytes: open
                    .map(|row| row.request.bytes + row.execution_bytes)
                    .sum(),
            },
        })
    }

    /// The oldest request of each status.
    pub(super) fn oldest(&self, now: Timestamp) -> Oldest {
        let mut oldest = Oldest {
            at: now,
            pending: None,
            startable: None,
            claimed: None,
            dispatched: None,
        };
        for row in self.requests.values().map(|row| &row.request) {
            let (known, since) = match known(&row.status) {
                RequestStatus::Pending if row.run_at <= now => {
                    (&mut oldest.pending, Some(row.run_at.max(row.created_at)))
                }
                RequestStatus::Claimed => (&mut oldest.claimed, row.claimed_at),
                RequestStatus::Dispatched => (&mut oldest.dispatched, row.dispatched_at),
                RequestStatus::Pending | RequestStatus::Completed | RequestStatus::Failed => {
                    continue;
                }
            };
            *known = (*known).into_iter().chain(since).min();
        }
        let ready = self.workspaces.keys().filter(|id| self.ready(**id, now));
        let first = ready.filter_map(|id| self.requests.get(&self.best(*id, now)?));
        let since = first.map(|row| row.request.run_at.max(row.request.created_at));
        oldest.startable = since.min();
        oldest
    }

    /// Requests by status.
    pub(super) fn counts(&self, workspace: WorkspaceId) -> Counts {
        let mut counts = Counts::default();
        for row in self.requests.values() {
            if row.request.workspace == workspace {
                *match known(&row.request.status) {
                    RequestStatus::Pending => &mut counts.pending,
                    RequestStatus::Claimed => &mut counts.claimed,
                    RequestStatus::Dispatched => &mut counts.dispatched,
                    RequestStatus::Completed => &mut counts.completed,
                    RequestStatus::Failed => &mut counts.failed,
                } += 1;
            }
        }
        counts
    }

    /// Whether a workspace exists and is not deleted.
    pub(super) fn exists(&self, workspace: WorkspaceId) -> bool {
        let row = self.workspaces.get(&workspace);
        row.is_some_and(|row| row.workspace.deleted_at.is_none())
    }

    /// The redrive of a failed request that has not ended.
    pub(super) fn live_redrive(&self, failed: RequestId) -> Option<RequestId> {
        let mut all = self.requests.values().map(|row| &row.request);
        all.find(|r| r.redrive_of == Some(failed) && !known(&r.status).is_finished())
            .map(|r| r.id)
    }
}
