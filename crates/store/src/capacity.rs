//! Drift: where slots, executions, requests and what is kept of them say different things, and what becomes of mending it.
//!
//! A slot is a RUNNING execution and nothing else, so most of what could disagree cannot. What is left are the records that spare a claim the
//! counting, and rows that someone wrote by hand, that a restored backup brought, or that a trigger did not see because it was switched off.
//!
//! On PostgreSQL that is `workspace_turn`: `held_at_most`, `oldest_admission` and `stragglers` may hide a RUNNING execution
//! ([`DriftKind::ExecutionWithoutSlot`]), and `has_room` may say full for nobody's sake ([`DriftKind::SlotWithoutExecution`]) if an execution was
//! ended without its event. On SQLite it is the numbering of slots and `has_room`, either way. On both it is the copy of a workspace's limit,
//! the counts by status, and requests and executions that do not point to each other.

use crate::store_trait::store_trait;
use crate::{Page, Result};
use leasehold_core::{ExecutionEnd, ExecutionId, RequestId, WorkspaceId};

store_trait! {
    /// Drift: finding it and repairing it.
    pub trait CapacityStore, observed by CapacityObserver {
        /// Looks for drift in a page of all workspaces, by id: where slots, executions, requests and what is kept of them say different things. Exact
        /// as of one moment for each workspace, and costs what is open there, never what has ended. Changes nothing.
        async fn capacity_audit(&self, page: Page<WorkspaceId>) -> Result<CapacityAudit>;

        /// Mends a difference where that is safe. What is kept is written anew from executions and requests. An execution that its request has forgotten
        /// is ended if its end is known. An open request's execution is RUNNING again, so that the engine is asked about it, if a slot is free. Idempotent,
        /// safe from everywhere at once.
        async fn capacity_repair(&self, repair: &CapacityRepair<'_>) -> Result<Repaired>;
    }
}

/// What differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DriftKind {
    /// A slot is held that no execution needs: the kept record says so, or a RUNNING execution's request has ended, is gone or has another.
    SlotWithoutExecution,
    /// An execution is RUNNING that the kept record does not know of, so that claims could admit one too many.
    ExecutionWithoutSlot,
    /// A request is CLAIMED or DISPATCHED, and its execution is not RUNNING: nobody would end it.
    RequestWithoutExecution,
    /// The counts of open requests that are kept are not those there are, or the kept record does not know of a line that waits.
    Counts,
    /// The limit, pause or tombstone that claims obey is not the workspace's.
    Limit,
    /// DISPATCHED here, ended in the engine for a while.
    EndedInEngine,
    /// DISPATCHED here, unknown to the engine.
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

    /// Its name, as it is shown and counted.
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

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    /// What sort it is.
    pub kind: DriftKind,
    /// The workspace it is found in.
    pub workspace: WorkspaceId,
    /// The request it is about, if about one.
    pub request: Option<RequestId>,
    /// The execution it is about, if about one.
    pub execution: Option<ExecutionId>,
    /// What says what, for people.
    pub text: String,
}

/// What a look at some workspaces found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapacityAudit {
    /// The differences; at most [`DRIFTS_MAX`] of one workspace.
    pub drifts: Vec<Drift>,
    /// The last workspace looked at, to go on after; none if there is nothing after it.
    pub last: Option<WorkspaceId>,
}

/// Differences that one workspace is shown with: more say no more.
pub const DRIFTS_MAX: usize = 100;

/// A difference to mend.
#[derive(Clone, Debug)]
pub struct CapacityRepair<'a> {
    /// Which.
    pub drift: &'a Drift,
    /// How the execution ended, if someone knows for certain that it does not run: only then the slot of an execution that its request
    /// has forgotten is freed.
    pub ended: Option<ExecutionEnd>,
}

/// What became of mending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repaired {
    /// What differed agrees now.
    Repaired,
    /// It agreed already.
    Over,
    /// It is not safe to mend, or not now.
    Left,
}
