//! JSON of request changes: the timeline of one request and the change stream.

use leasehold_core::{Named, RequestId, RequestStatus, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One transition of one request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// The request that changed.
    #[schema(value_type = String, format = Uuid)]
    pub request: RequestId,
    /// The workspace of the request.
    #[schema(value_type = String, format = Uuid)]
    pub workspace: WorkspaceId,
    /// The previous status; absent for the enqueue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<crate::request::RequestStatusName>)]
    pub from: Option<Named<RequestStatus>>,
    /// The new status.
    #[schema(value_type = crate::request::RequestStatusName)]
    pub to: Named<RequestStatus>,
    /// When the transition happened.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// Who caused the transition: the name of a key or of a component.
    pub by: String,
    /// The reason, if the transition has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Every transition of a request whose event is kept, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Timeline {
    /// The transitions, oldest first.
    pub events: Vec<Event>,
    /// Whether the first transitions are missing: their events were older than the longest retention.
    #[serde(default)]
    pub beginning_pruned: bool,
}

/// A page of changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChangePage {
    /// The changes; may be empty.
    pub changes: Vec<Change>,
    /// Cursor: pass it as `after` to continue, now or later.
    pub next: String,
    /// Whether more changes may follow now. A page can be empty before the end: the server stops after reading 5,000 changes of other workspaces.
    #[serde(default)]
    pub more: bool,
}

/// An event of the change stream with its cursor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Change {
    /// Cursor to resume after this event.
    pub cursor: String,
    /// The event.
    pub event: Event,
}
