//! Messages inside requests and responses.

use super::{NamespaceState, TimeoutType, WorkflowExecutionStatus};
use prost::{Message, Oneof};
use prost_types::Timestamp;
use std::collections::HashMap;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct WorkflowExecution {
    #[prost(string, tag = "1")]
    pub(crate) workflow_id: String,
    #[prost(string, tag = "2")]
    pub(crate) run_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct WorkflowType {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TaskQueue {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Payload {
    #[prost(map = "string, bytes", tag = "1")]
    pub(crate) metadata: HashMap<String, Vec<u8>>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) data: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Payloads {
    #[prost(message, repeated, tag = "1")]
    pub(crate) payloads: Vec<Payload>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Memo {
    #[prost(map = "string, message", tag = "1")]
    pub(crate) fields: HashMap<String, Payload>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Header {
    #[prost(map = "string, message", tag = "1")]
    pub(crate) fields: HashMap<String, Payload>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Priority {
    #[prost(int32, tag = "1")]
    pub(crate) priority_key: i32,
    #[prost(string, tag = "2")]
    pub(crate) fairness_key: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct WorkflowExecutionInfo {
    #[prost(message, optional, tag = "1")]
    pub(crate) execution: Option<WorkflowExecution>,
    #[prost(message, optional, tag = "4")]
    pub(crate) close_time: Option<Timestamp>,
    #[prost(enumeration = "WorkflowExecutionStatus", tag = "5")]
    pub(crate) status: i32,
    #[prost(message, optional, tag = "10")]
    pub(crate) memo: Option<Memo>,
    #[prost(string, tag = "21")]
    pub(crate) first_run_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct WorkflowExecutionExtendedInfo {
    /// Only the keys are read.
    #[prost(map = "string, message", tag = "7")]
    pub(crate) request_id_infos: HashMap<String, ()>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PendingActivityInfo {
    #[prost(string, tag = "1")]
    pub(crate) activity_id: String,
    #[prost(message, optional, tag = "4")]
    pub(crate) heartbeat_details: Option<Payloads>,
    #[prost(int32, tag = "7")]
    pub(crate) attempt: i32,
    #[prost(message, optional, tag = "11")]
    pub(crate) last_failure: Option<Failure>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PollerInfo {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct NamespaceInfo {
    #[prost(enumeration = "NamespaceState", tag = "2")]
    pub(crate) state: i32,
    #[prost(string, tag = "6")]
    pub(crate) id: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Failure {
    #[prost(string, tag = "1")]
    pub(crate) message: String,
    #[prost(message, optional, boxed, tag = "4")]
    pub(crate) cause: Option<Box<Failure>>,
    #[prost(oneof = "FailureInfo", tags = "5, 6")]
    pub(crate) failure_info: Option<FailureInfo>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum FailureInfo {
    #[prost(message, tag = "5")]
    Application(ApplicationFailureInfo),
    #[prost(message, tag = "6")]
    Timeout(TimeoutFailureInfo),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ApplicationFailureInfo {
    #[prost(string, tag = "1")]
    pub(crate) r#type: String,
    #[prost(message, optional, tag = "3")]
    pub(crate) details: Option<Payloads>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TimeoutFailureInfo {
    #[prost(enumeration = "TimeoutType", tag = "1")]
    pub(crate) timeout_type: i32,
}
