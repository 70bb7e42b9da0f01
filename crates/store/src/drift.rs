//! Drift: inconsistencies between slots, executions, requests and the records derived from them, and their repair.
//!
//! A RUNNING execution is a slot, so most inconsistencies cannot occur. What can drift are the derived records that save claims from
//! counting, and rows that were written by hand, restored from a backup, or changed while a trigger was disabled.
//!
//! On PostgreSQL the derived record is `workspace_turn`: `held_at_most`, `oldest_admission` and `stragglers` may miss a RUNNING execution
//! ([`DriftKind::ExecutionWithoutSlot`]), and `has_room` may be false without a reason ([`DriftKind::SlotWithoutExecution`]) if an execution was
//! ended without its event. On SQLite both can happen to the numbering of slots and `has_room`. On both databases the copy of a workspace's limit,
//! the counts by status, and the references between requests and executions can drift.

use crate::store_trait::store_trait;
use crate::{Page, Result};
use leasehold_core::{ExecutionEnd, ExecutionId, RequestId, WorkspaceId};

store_trait! {
    /// Drift: checking and repairing.
    pub trait DriftStore, observed by DriftObserver {
        /// Checks a page of all workspaces, by id, for drift. The result is exact as of one moment per workspace. The cost depends on open
        /// requests only, never on history. Changes nothing.
        async fn drift_check(&self, page: Page<WorkspaceId>) -> Result<DriftReport>;

        /// Repairs one drift if that is safe. Derived records are recomputed from executions and requests. An execution that its request no longer refers to
        /// is ended if its end is known. The execution of an open request is set RUNNING again if a slot is free, so that the engine is asked about it.
        /// Idempotent, and safe to call from several instances at once.
        async fn drift_repair(&self, repair: &DriftRepair<'_>) -> Result<Repaired>;
    }
}

/// The kind of a drift.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DriftKind {
    /// A slot is in use without need: by the derived record, or by a RUNNING execution whose request has ended, is deleted or has another execution.
    SlotWithoutExecution,
    /// A RUNNING execution is missing in the derived record, so that claims could exceed the limit.
    ExecutionWithoutSlot,
    /// A request is CLAIMED or DISPATCHED, but its execution is not RUNNING, so that no service would end it.
    RequestWithoutExecution,
    /// The stored counts of open requests are wrong, or the derived record misses a line of waiting requests.
    Counts,
    /// The copy of the limit, pause or tombstone that claims use differs from the workspace.
    Limit,
    /// DISPATCHED in the store, but ended in the engine some time ago.
    EndedInEngine,
    /// DISPATCHED in the store, but unknown to the engine.
    UnknownToEngine,
}

impl DriftKind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::SlotWithoutExecution,
        Self::ExecutionWithoutSlot,
        Self::RequestWithoutExecution,
        Self::Counts,
        Self::Limit,
        Self::EndedInEngine,
        Self::UnknownToEngine,
    ];

    /// Returns the name, as shown and as a metric label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SlotWithoutExecution => "slot_without_execution",
            Self::ExecutionWithoutSlot => "execution_without_slot",
            Self::RequestWithoutExecution => "request_without_execution",
            Self::Counts => "counts",
            Self::Limit => "limit",
            Self::EndedInEngine => "ended_in_engine",
            Self::UnknownToEngine => "unknown_to_engine",
        }
    }
}

impl std::fmt::Display for DriftKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One drift.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    /// Its kind.
    pub kind: DriftKind,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The request it concerns, if any.
    pub request: Option<RequestId>,
    /// The execution it concerns, if any.
    pub execution: Option<ExecutionId>,
    /// The two values that differ, as text.
    pub text: String,
}

/// The result of a drift check of some workspaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DriftReport {
    /// The drifts; at most [`DRIFTS_MAX`] per workspace.
    pub drifts: Vec<Drift>,
    /// The last workspace checked, to continue after; none at the end.
    pub last: Option<WorkspaceId>,
}

/// The maximum number of drifts reported per workspace.
pub const DRIFTS_MAX: usize = 100;

/// A drift to repair.
#[derive(Clone, Debug)]
pub struct DriftRepair<'a> {
    /// The drift.
    pub drift: &'a Drift,
    /// How the execution ended, if the engine confirmed it. Only then the slot of an execution that its request no longer refers to is
    /// freed.
    pub ended: Option<ExecutionEnd>,
}

/// Outcome of a repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repaired {
    /// The drift is repaired.
    Repaired,
    /// There was nothing to repair.
    AlreadyConsistent,
    /// The repair is not safe, or not possible now.
    Skipped,
}
