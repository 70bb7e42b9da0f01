//! Makes a history of what an adapter's test reads from its database: events and changes of limits, in commit order.

use super::{Change, Commit, History, Holding, Move};
use leasehold_core::{RequestId, RequestStatus, Timestamp};
use leasehold_store::change::Event;
use std::collections::{BTreeMap, HashSet};

/// An event with what the checker needs to know of its request.
#[derive(Clone, Debug)]
pub struct Read {
    /// The event.
    pub event: Event,
    /// The request's priority.
    pub priority: i16,
    /// When the request was enqueued.
    pub created_at: Timestamp,
    /// For a step to PENDING: whether it is in the line at once.
    pub due: bool,
}

/// Builds a history, commit by commit.
#[derive(Debug, Default)]
pub struct Reader {
    history: History,
    kept: HashSet<RequestId>,
}

impl Reader {
    /// The position that the next commit will have.
    pub fn next_position(&self) -> u64 {
        self.history.commits.len() as u64 + 1
    }

    /// Adds a commit that saw everything up to `snapshot`.
    pub fn commit(&mut self, snapshot: u64, changes: Vec<Change>) {
        let position = self.next_position();
        self.history.commits.push(Commit {
            position,
            snapshot,
            changes,
        });
    }

    /// What an event says, given the events before it. An execution is kept after an unknown start or an expired lease.
    pub fn moved(&mut self, read: Read) -> Change {
        let event = &read.event;
        let execution = match event.to {
            RequestStatus::Pending
                if matches!(event.reason.as_deref(), Some("unknown" | "lease_expired")) =>
            {
                self.kept.insert(event.request);
                Holding::Kept
            }
            RequestStatus::Claimed if self.kept.remove(&event.request) => Holding::Kept,
            RequestStatus::Claimed => Holding::New,
            RequestStatus::Dispatched => Holding::Kept,
            RequestStatus::Pending | RequestStatus::Completed | RequestStatus::Failed => {
                Holding::Nothing
            }
        };
        Change::Moved(Move {
            request: event.request,
            workspace: event.workspace,
            from: event.from,
            to: event.to,
            priority: read.priority,
            created_at: read.created_at,
            execution,
            due: read.due,
        })
    }

    /// The whole history, with what is in the store now.
    pub fn end(mut self, left: BTreeMap<RequestId, RequestStatus>) -> History {
        self.history.left = left;
        self.history
    }
}
