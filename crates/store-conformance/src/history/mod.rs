//! The history of a stress run in commit order, and its invariants at every commit. Does not know the database.

mod check;
mod read;
#[cfg(test)]
mod tests;

pub use check::check;
pub use read::{HistoryBuilder, RecordedEvent};

use leasehold_core::{RequestId, RequestStatus, Timestamp, WorkspaceId};
use std::collections::BTreeMap;

/// All commits in order, and the final state.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The commits, with rising positions.
    pub commits: Vec<Commit>,
    /// Every request in the store after the last commit, and its status.
    pub left: BTreeMap<RequestId, RequestStatus>,
}

/// One transaction.
#[derive(Clone, Debug)]
pub struct Commit {
    /// Its position in the order of commits.
    pub position: u64,
    /// The position of the last commit in its snapshot. At most `position - 1`, which is the value for a transaction that read
    /// nothing or ran alone; 0 if unknown.
    pub snapshot: u64,
    /// Its changes, in order.
    pub changes: Vec<HistoryChange>,
}

/// One change of a transaction.
#[derive(Clone, Debug)]
pub enum HistoryChange {
    /// A workspace has this limit from now on; also its initial limit.
    Limit {
        /// The workspace.
        workspace: WorkspaceId,
        /// The limit.
        limit: u32,
    },
    /// A workspace is paused or resumed.
    Paused {
        /// The workspace.
        workspace: WorkspaceId,
        /// Whether it is paused from now on.
        paused: bool,
    },
    /// A request changed its status; also its enqueue.
    Moved(Transition),
    /// A PENDING request became due and joined the line.
    Due(RequestId),
}

/// One transition of one request.
#[derive(Clone, Debug)]
pub struct Transition {
    /// The request.
    pub request: RequestId,
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// The status before; none at the enqueue.
    pub from: Option<RequestStatus>,
    /// The status after.
    pub to: RequestStatus,
    /// Higher goes first.
    pub priority: i16,
    /// When it was enqueued: of equal priority the oldest goes first, then the lowest id.
    pub created_at: Timestamp,
    /// Its execution after this transition.
    pub execution: ExecutionUse,
    /// For a transition to PENDING: whether the request is in line at once. If not, only a [`HistoryChange::Due`] puts it there; until
    /// then the order check ignores it.
    pub due: bool,
}

/// The execution of a request after a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutionUse {
    /// No running execution.
    None,
    /// An execution that this transition created: it took a slot.
    New,
    /// The execution it had before.
    Kept,
}

/// A violated invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// Positions do not rise, or a snapshot is later than its commit.
    OutOfOrder {
        /// The position of the commit.
        position: u64,
    },
    /// A commit admitted beyond the limit then in force.
    OverLimit {
        /// The position of the commit.
        position: u64,
        /// The workspace.
        workspace: WorkspaceId,
        /// The slots in use.
        running: u32,
        /// The limit.
        limit: u32,
    },
    /// A paused workspace admitted.
    AdmittedWhilePaused {
        /// The position of the commit.
        position: u64,
        /// The request.
        request: RequestId,
    },
    /// A request was claimed that was not PENDING.
    ClaimedTwice {
        /// The position of the commit.
        position: u64,
        /// The request.
        request: RequestId,
    },
    /// A request left a status that it was not in, or made a transition that does not exist.
    InvalidTransition {
        /// The position of the commit.
        position: u64,
        /// The request.
        request: RequestId,
        /// The status according to the history.
        was: Option<RequestStatus>,
        /// The status that the transition left.
        from: Option<RequestStatus>,
        /// The status that the transition reached.
        to: RequestStatus,
    },
    /// A request took a second slot, continued with an execution that it did not have, or ended with a running one.
    WrongExecutionUse {
        /// The position of the commit.
        position: u64,
        /// The request.
        request: RequestId,
        /// The execution according to the transition.
        execution: ExecutionUse,
    },
    /// A request was admitted before another of its workspace that comes first and was visible to the claim.
    OrderViolated {
        /// The position of the commit.
        position: u64,
        /// The admitted request.
        admitted: RequestId,
        /// The request that comes first.
        better: RequestId,
    },
    /// A request is missing at the end, or has another status than in the history.
    Lost {
        /// The request.
        request: RequestId,
        /// The last status in the history.
        last: RequestStatus,
        /// The status in the store.
        left: Option<RequestStatus>,
    },
    /// The store has a request that was never enqueued.
    NeverEnqueued {
        /// The request.
        request: RequestId,
    },
}

/// The size of a history without violations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Transactions.
    pub commits: usize,
    /// Requests enqueued.
    pub requests: usize,
    /// Transitions of requests.
    pub moves: usize,
    /// Claims that took a slot.
    pub admissions: usize,
    /// Claims that continued with an execution.
    pub resumptions: usize,
    /// Requests that ended.
    pub finished: usize,
    /// Changes of limit and pauses, the first limits included.
    pub limit_changes: usize,
    /// Commits after which some workspace was exactly at its limit.
    pub full: usize,
    /// The maximum of running executions in each workspace.
    pub max_running: BTreeMap<WorkspaceId, u32>,
}
