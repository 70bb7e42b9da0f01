//! Builds a history from the events and limit changes that an adapter's test reads from its database, in commit order.

use super::{Commit, ExecutionUse, History, HistoryChange, Transition};
use crate::factory::known;
use leasehold_core::{RequestId, RequestStatus, Timestamp};
use leasehold_store::change::Event;
use std::collections::{BTreeMap, HashSet};

/// An event with the fields of its request that the check needs.
#[derive(Clone, Debug)]
pub struct RecordedEvent {
    /// The event.
    pub event: Event,
    /// The request's priority.
    pub priority: i16,
    /// When the request was enqueued.
    pub created_at: Timestamp,
    /// For a transition to PENDING: whether the request is in line at once.
    pub due: bool,
}

/// Builds a history, commit by commit.
#[derive(Debug, Default)]
pub struct HistoryBuilder {
    history: History,
    kept: HashSet<RequestId>,
}

impl HistoryBuilder {
    /// The position that the next commit will have.
    pub fn next_position(&self) -> u64 {
        self.history.commits.len() as u64 + 1
    }

    /// Adds a commit with this snapshot.
    pub fn commit(&mut self, snapshot: u64, changes: Vec<HistoryChange>) {
        let position = self.next_position();
        self.history.commits.push(Commit {
            position,
            snapshot,
            changes,
        });
    }

    /// Converts an event to a change, given the events before it. An execution is kept after an unknown start or an expired lease.
    pub fn moved(&mut self, read: RecordedEvent) -> HistoryChange {
        let event = &read.event;
        let execution = match known(&event.to) {
            RequestStatus::Pending
                if matches!(event.reason.as_deref(), Some("unknown" | "lease_expired")) =>
            {
                self.kept.insert(event.request);
                ExecutionUse::Kept
            }
            RequestStatus::Claimed if self.kept.remove(&event.request) => ExecutionUse::Kept,
            RequestStatus::Claimed => ExecutionUse::New,
            RequestStatus::Dispatched => ExecutionUse::Kept,
            RequestStatus::Pending | RequestStatus::Completed | RequestStatus::Failed => {
                ExecutionUse::None
            }
        };
        HistoryChange::Moved(Transition {
            request: event.request,
            workspace: event.workspace,
            from: event.from.as_ref().map(known),
            to: known(&event.to),
            priority: read.priority,
            created_at: read.created_at,
            execution,
            due: read.due,
        })
    }

    /// Returns the history with the final statuses in the store.
    pub fn end(mut self, left: BTreeMap<RequestId, RequestStatus>) -> History {
        self.history.left = left;
        self.history
    }
}
