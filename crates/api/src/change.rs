//! Changes of requests: the timeline of one, and the stream of all.

use leasehold_core::{RequestId, RequestStatus, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One transition of one request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// The request.
    #[schema(value_type = String, format = Uuid)]
    pub request: RequestId,
    /// Whose it is.
    #[schema(value_type = String, format = Uuid)]
    pub workspace: WorkspaceId,
    /// Where it was; absent when it was enqueued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<crate::request::RequestStatusName>)]
    pub from: Option<RequestStatus>,
    /// Where it is.
    #[schema(value_type = crate::request::RequestStatusName)]
    pub to: RequestStatus,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// Who did it.
    pub by: String,
    /// Why, where there is more to say than the transition itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Every transition of a request, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Timeline {
    /// The transitions.
    pub events: Vec<Event>,
}

/// A page of the stream of changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChangePage {
    /// What happened, maybe nothing.
    pub changes: Vec<Change>,
    /// Hand this back as `after` to go on, at once or later.
    pub next: String,
}

/// An event of the stream, and its place in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Change {
    /// Where to go on after this one.
    pub cursor: String,
    /// What happened.
    pub event: Event,
}
