//! Events of a workflow's history.

use super::{Failure, Payload, Payloads};
use prost::{Message, Oneof};
use prost_types::Timestamp;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct History {
    #[prost(message, repeated, tag = "1")]
    pub(crate) events: Vec<HistoryEvent>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HistoryEvent {
    #[prost(int64, tag = "1")]
    pub(crate) event_id: i64,
    #[prost(message, optional, tag = "2")]
    pub(crate) event_time: Option<Timestamp>,
    #[prost(message, optional, tag = "301")]
    pub(crate) user_metadata: Option<UserMetadata>,
    #[prost(oneof = "Attributes", tags = "8, 15, 16, 17, 18, 19, 20, 21, 27")]
    pub(crate) attributes: Option<Attributes>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct UserMetadata {
    #[prost(message, optional, tag = "1")]
    pub(crate) summary: Option<Payload>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Attributes {
    #[prost(message, tag = "8")]
    WorkflowExecutionFailed(WorkflowExecutionFailed),
    #[prost(message, tag = "15")]
    ActivityTaskScheduled(ActivityTaskScheduled),
    #[prost(message, tag = "16")]
    ActivityTaskStarted(ActivityTaskStarted),
    #[prost(message, tag = "17")]
    ActivityTaskCompleted(ActivityTaskCompleted),
    #[prost(message, tag = "18")]
    ActivityTaskFailed(ActivityTaskEnded),
    #[prost(message, tag = "19")]
    ActivityTaskTimedOut(ActivityTaskEnded),
    #[prost(message, tag = "20")]
    TimerStarted(TimerStarted),
    #[prost(message, tag = "21")]
    TimerFired(TimerFired),
    #[prost(message, tag = "27")]
    WorkflowExecutionTerminated(WorkflowExecutionTerminated),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct WorkflowExecutionFailed {
    #[prost(message, optional, tag = "1")]
    pub(crate) failure: Option<Failure>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct WorkflowExecutionTerminated {
    #[prost(string, tag = "1")]
    pub(crate) reason: String,
    #[prost(string, tag = "3")]
    pub(crate) identity: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ActivityTaskScheduled {
    #[prost(string, tag = "1")]
    pub(crate) activity_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ActivityTaskStarted {
    #[prost(int64, tag = "1")]
    pub(crate) scheduled_event_id: i64,
    #[prost(int32, tag = "4")]
    pub(crate) attempt: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ActivityTaskCompleted {
    #[prost(message, optional, tag = "1")]
    pub(crate) result: Option<Payloads>,
    #[prost(int64, tag = "2")]
    pub(crate) scheduled_event_id: i64,
}

/// An activity that failed, or timed out: both have the same fields.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ActivityTaskEnded {
    #[prost(message, optional, tag = "1")]
    pub(crate) failure: Option<Failure>,
    #[prost(int64, tag = "2")]
    pub(crate) scheduled_event_id: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TimerStarted {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TimerFired {
    #[prost(int64, tag = "2")]
    pub(crate) started_event_id: i64,
}
