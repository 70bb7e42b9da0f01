//! The event log: the timeline of one request, and the stream of all changes.

use crate::Result;
use crate::store_trait::store_trait;
use leasehold_core::{Named, RequestId, RequestStatus, Timestamp, WorkspaceId};

store_trait! {
    /// The change stream.
    pub trait ChangeStore, observed by ChangeObserver {
        /// Returns a page of the change stream, of all workspaces or of one. Every event appears exactly once, whenever its transaction commits, whether
        /// the reader continues after a page or after any change of a page. A start at the oldest event leaves out requests that are pruned. A cursor is rejected if
        /// events after it have expired. One call scans a bounded number of events, also of other workspaces, so a
        /// page may be empty before the end of the stream.
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
    /// The workspace it belongs to.
    pub workspace: WorkspaceId,
    /// The status before; none when it was enqueued.
    pub from: Option<Named<RequestStatus>>,
    /// The status after.
    pub to: Named<RequestStatus>,
    /// The time of the transition.
    pub at: Timestamp,
    /// The caller or service that caused it.
    pub by: String,
    /// Further details, if any.
    pub reason: Option<String>,
}

/// Where to start reading the change stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeStart {
    /// At the oldest event kept.
    Oldest,
    /// With events that commit from now on.
    Now,
    /// After this cursor.
    After(ChangeCursor),
}

/// A position in the change stream, in the store's own encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeCursor(pub Vec<u8>);

/// An event of the change stream and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The event.
    pub event: Event,
    /// The cursor to continue after this event.
    pub cursor: ChangeCursor,
}

/// A page of the change stream. Events of one request are in order; an event whose transaction commits late appears late.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangePage {
    /// The events; may be empty.
    pub changes: Vec<Change>,
    /// The cursor to continue after this page.
    pub cursor: ChangeCursor,
    /// Whether the stream may have more events now. Otherwise the page reached its end.
    pub more: bool,
}
