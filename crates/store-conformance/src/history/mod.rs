//! The history of a race in commit order, and what must be true of it at every commit. Pure: where a history comes from is not known here.

mod check;
mod read;
#[cfg(test)]
mod tests;

pub use check::check;
pub use read::{Read, Reader};

use leasehold_core::{RequestId, RequestStatus, Timestamp, WorkspaceId};
use std::collections::BTreeMap;

/// Everything that was committed, in the order it was committed, and what was there at the end.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The commits; their positions rise.
    pub commits: Vec<Commit>,
    /// Every request in the store after the last commit, and its status.
    pub left: BTreeMap<RequestId, RequestStatus>,
}

/// One transaction.
#[derive(Clone, Debug)]
pub struct Commit {
    /// Its place in the order of commits.
    pub position: u64,
    /// The position of the last commit it could see: what its statement decided by. At most `position - 1`; give
    /// exactly that for a transaction that read nothing or ran alone, and 0 where it is not known.
    pub snapshot: u64,
    /// What it did, in order.
    pub changes: Vec<Change>,
}

/// One thing a transaction did.
#[derive(Clone, Debug)]
pub enum Change {
    /// A workspace has this limit from now on; also the first one.
    Limit {
        /// Whose.
        workspace: WorkspaceId,
        /// How many may run.
        limit: u32,
    },
    /// A workspace is paused or resumed.
    Paused {
        /// Whose.
        workspace: WorkspaceId,
        /// Whether it admits nothing from now on.
        paused: bool,
    },
    /// A request moved; also its first step into the queue.
    Moved(Move),
    /// A request that was PENDING but not due joined the line.
    Due(RequestId),
}

/// One transition of one request.
#[derive(Clone, Debug)]
pub struct Move {
    /// The request.
    pub request: RequestId,
    /// Whose it is.
    pub workspace: WorkspaceId,
    /// Where it was; none when it was enqueued.
    pub from: Option<RequestStatus>,
    /// Where it is.
    pub to: RequestStatus,
    /// Higher goes first.
    pub priority: i16,
    /// When it was enqueued: among the same priority the oldest goes first, then the lowest id.
    pub created_at: Timestamp,
    /// The execution it has after this step.
    pub execution: Holding,
    /// For a step to PENDING: whether it is in the line at once. If not, only a [`Change::Due`] puts it there; without
    /// one nobody is blamed for passing it over.
    pub due: bool,
}

/// What a request holds after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holding {
    /// Nothing that runs.
    Nothing,
    /// An execution that this step created: it took a slot.
    New,
    /// The execution it had before.
    Kept,
}

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// Positions do not rise, or a transaction saw its own future.
    OutOfOrder {
        /// Where.
        position: u64,
    },
    /// A commit that admits left more running than the limit then in force.
    OverLimit {
        /// Where.
        position: u64,
        /// Whose limit.
        workspace: WorkspaceId,
        /// How many hold a slot.
        running: u32,
        /// How many may.
        limit: u32,
    },
    /// A paused workspace admitted.
    AdmittedInPause {
        /// Where.
        position: u64,
        /// What.
        request: RequestId,
    },
    /// A request was claimed that was not PENDING.
    ClaimedTwice {
        /// Where.
        position: u64,
        /// What.
        request: RequestId,
    },
    /// A request left a status it was not in, or by a way there is none.
    Jumped {
        /// Where.
        position: u64,
        /// What.
        request: RequestId,
        /// Where it was, as far as the history tells.
        was: Option<RequestStatus>,
        /// Where the step says it came from.
        from: Option<RequestStatus>,
        /// Where it went.
        to: RequestStatus,
    },
    /// A request took a second slot, or went on with an execution it did not have, or ended with one running.
    WrongHolding {
        /// Where.
        position: u64,
        /// What.
        request: RequestId,
        /// What it says it holds.
        holding: Holding,
    },
    /// A request was admitted while a better one of its workspace was there for the claim to see.
    PassedOver {
        /// Where.
        position: u64,
        /// What was admitted.
        admitted: RequestId,
        /// What should have been.
        better: RequestId,
    },
    /// A request is not there at the end, or not as its history says.
    Lost {
        /// Which.
        request: RequestId,
        /// Where its history ends.
        last: RequestStatus,
        /// What the store says.
        left: Option<RequestStatus>,
    },
    /// A request is there at the end that nobody enqueued.
    MadeUp {
        /// Which.
        request: RequestId,
    },
}

/// What a history without violations was about: how much it proves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Transactions.
    pub commits: usize,
    /// Requests enqueued.
    pub requests: usize,
    /// Steps of requests.
    pub moves: usize,
    /// Claims that took a slot.
    pub admissions: usize,
    /// Claims that went on with an execution.
    pub resumptions: usize,
    /// Requests that ended.
    pub finished: usize,
    /// Changes of limit and pauses, the first limits included.
    pub limit_changes: usize,
    /// Commits after which some workspace was exactly at its limit.
    pub full: usize,
    /// The most that ran at once in each workspace.
    pub most_running: BTreeMap<WorkspaceId, u32>,
}
