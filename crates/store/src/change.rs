//! The event log: the timeline of one request, and the stream of all changes.

use crate::Result;
use crate::store_trait::store_trait;
use leasehold_core::{RequestId, RequestStatus, Timestamp, WorkspaceId};

store_trait! {
    /// The stream of changes.
    pub trait ChangeStore, observed by ChangeObserver {
        /// A page of the stream of changes, of all workspaces or of one. It misses none and repeats none, whenever their transactions commit, and
        /// wherever it goes on: after a page or after any change of one.
        async fn change_list(
            &self,
            start: &ChangeStart,
            workspace: Option<WorkspaceId>,
            limit: u32,
        ) -> Result<ChangePage>;
    }
}

/// One transition of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The request.
    pub request: RequestId,
    /// Whose it is.
    pub workspace: WorkspaceId,
    /// Where it was; none when it was enqueued.
    pub from: Option<RequestStatus>,
    /// Where it is.
    pub to: RequestStatus,
    /// When.
    pub at: Timestamp,
    /// Who did it.
    pub by: String,
    /// Why, where there is more to say than the transition itself.
    pub reason: Option<String>,
}

/// Where to begin reading the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeStart {
    /// At the oldest event kept.
    Oldest,
    /// With what commits from now on.
    Now,
    /// Where an earlier page ended.
    After(ChangeCursor),
}

/// A place in the stream. Opaque: keep it and hand it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeCursor(pub String);

/// An event of the stream, and its place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What happened.
    pub event: Event,
    /// Where to go on after this one.
    pub cursor: ChangeCursor,
}

/// A page of the stream. Events of one request are in their order; an event that commits late comes late, and comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangePage {
    /// What happened, maybe nothing.
    pub changes: Vec<Change>,
    /// Where to go on after this page.
    pub cursor: ChangeCursor,
}
