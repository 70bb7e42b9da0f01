//! The part of Temporal's gRPC API that the engine calls: its messages with the fields in use, and the name of each call.
//!
//! Written by hand: the generated code of the whole API takes a minute to compile, and the engine uses ten calls of several hundred. Field
//! numbers are Temporal's and never change; unknown fields are skipped. The tests compare with the SDK's messages.

mod enums;
mod history;
mod parts;

pub(crate) use enums::*;
pub(crate) use history::*;
pub(crate) use parts::*;

use prost::Message;
use prost_types::{Any, Duration};

/// The service behind every path.
const SERVICE: &str = "temporal.api.workflowservice.v1.WorkflowService";

/// A request message of a unary call.
pub(crate) trait Call: Message + 'static {
    /// The response message.
    type Response: Message + Default + 'static;
    /// The name of the call.
    const NAME: &'static str;

    /// The call's namespace, if it has one.
    fn namespace(&self) -> Option<&str>;

    /// The path of the call.
    fn path() -> String {
        format!("/{SERVICE}/{}", Self::NAME)
    }
}

macro_rules! calls {
    ($($name:literal: $request:ty => $answer:ty),* $(,)?) => {
        $(impl Call for $request {
            type Response = $answer;
            const NAME: &'static str = $name;

            fn namespace(&self) -> Option<&str> {
                Some(&self.namespace)
            }
        })*
    };
}

calls! {
    "StartWorkflowExecution": StartWorkflowExecutionRequest => StartWorkflowExecutionResponse,
    "DescribeWorkflowExecution": DescribeWorkflowExecutionRequest => DescribeWorkflowExecutionResponse,
    "GetWorkflowExecutionHistory": GetWorkflowExecutionHistoryRequest => GetWorkflowExecutionHistoryResponse,
    "RequestCancelWorkflowExecution": RequestCancelWorkflowExecutionRequest => (),
    "TerminateWorkflowExecution": TerminateWorkflowExecutionRequest => (),
    "ListWorkflowExecutions": ListWorkflowExecutionsRequest => ListWorkflowExecutionsResponse,
    "DescribeTaskQueue": DescribeTaskQueueRequest => DescribeTaskQueueResponse,
    "DescribeNamespace": DescribeNamespaceRequest => DescribeNamespaceResponse,
}

impl Call for GetSystemInfoRequest {
    type Response = ();
    const NAME: &'static str = "GetSystemInfo";

    fn namespace(&self) -> Option<&str> {
        None
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetSystemInfoRequest {}

impl Call for GetClusterInfoRequest {
    type Response = GetClusterInfoResponse;
    const NAME: &'static str = "GetClusterInfo";

    fn namespace(&self) -> Option<&str> {
        None
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetClusterInfoRequest {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetClusterInfoResponse {
    #[prost(string, tag = "3")]
    pub(crate) cluster_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct StartWorkflowExecutionRequest {
    #[prost(string, tag = "1")]
    pub(crate) namespace: String,
    #[prost(string, tag = "2")]
    pub(crate) workflow_id: String,
    #[prost(message, optional, tag = "3")]
    pub(crate) workflow_type: Option<WorkflowType>,
    #[prost(message, optional, tag = "4")]
    pub(crate) task_queue: Option<TaskQueue>,
    #[prost(message, optional, tag = "5")]
    pub(crate) input: Option<Payloads>,
    #[prost(message, optional, tag = "6")]
    pub(crate) workflow_execution_timeout: Option<Duration>,
    #[prost(string, tag = "9")]
    pub(crate) identity: String,
    #[prost(string, tag = "10")]
    pub(crate) request_id: String,
    #[prost(enumeration = "WorkflowIdReusePolicy", tag = "11")]
    pub(crate) workflow_id_reuse_policy: i32,
    #[prost(enumeration = "WorkflowIdConflictPolicy", tag = "22")]
    pub(crate) workflow_id_conflict_policy: i32,
    #[prost(message, optional, tag = "14")]
    pub(crate) memo: Option<Memo>,
    #[prost(message, optional, tag = "16")]
    pub(crate) header: Option<Header>,
    #[prost(message, optional, tag = "27")]
    pub(crate) priority: Option<Priority>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct StartWorkflowExecutionResponse {
    #[prost(enumeration = "WorkflowExecutionStatus", tag = "5")]
    pub(crate) status: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DescribeWorkflowExecutionRequest {
    #[prost(string, tag = "1")]
    pub(crate) namespace: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) execution: Option<WorkflowExecution>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DescribeWorkflowExecutionResponse {
    #[prost(message, optional, tag = "2")]
    pub(crate) workflow_execution_info: Option<WorkflowExecutionInfo>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) pending_activities: Vec<PendingActivityInfo>,
    #[prost(message, optional, tag = "8")]
    pub(crate) workflow_extended_info: Option<WorkflowExecutionExtendedInfo>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetWorkflowExecutionHistoryRequest {
    #[prost(string, tag = "1")]
    pub(crate) namespace: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) execution: Option<WorkflowExecution>,
    #[prost(int32, tag = "3")]
    pub(crate) maximum_page_size: i32,
    #[prost(bytes = "vec", tag = "4")]
    pub(crate) next_page_token: Vec<u8>,
    #[prost(enumeration = "HistoryEventFilterType", tag = "6")]
    pub(crate) history_event_filter_type: i32,
    #[prost(bool, tag = "7")]
    pub(crate) skip_archival: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetWorkflowExecutionHistoryResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) history: Option<History>,
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) next_page_token: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RequestCancelWorkflowExecutionRequest {
    #[prost(string, tag = "1")]
    pub(crate) namespace: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) workflow_execution: Option<WorkflowExecution>,
    #[prost(string, tag = "3")]
    pub(crate) identity: String,
    #[prost(string, tag = "4")]
    pub(crate) request_id: String,
    #[prost(string, tag = "6")]
    pub(crate) reason: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TerminateWorkflowExecutionRequest {
    #[prost(string, tag = "1")]
    pub(crate) namespace: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) workflow_execution: Option<WorkflowExecution>,
    #[prost(string, tag = "3")]
    pub(crate) reason: String,
    #[prost(string, tag = "5")]
    pub(crate) identity: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ListWorkflowExecutionsRequest {
    #[prost(string, tag = "1")]
    pub(crate) namespace: String,
    #[prost(int32, tag = "2")]
    pub(crate) page_size: i32,
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) next_page_token: Vec<u8>,
    #[prost(string, tag = "4")]
    pub(crate) query: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ListWorkflowExecutionsResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) executions: Vec<WorkflowExecutionInfo>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) next_page_token: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DescribeTaskQueueRequest {
    #[prost(string, tag = "1")]
    pub(crate) namespace: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) task_queue: Option<TaskQueue>,
    #[prost(enumeration = "TaskQueueType", tag = "3")]
    pub(crate) task_queue_type: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DescribeTaskQueueResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) pollers: Vec<PollerInfo>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DescribeNamespaceRequest {
    #[prost(string, tag = "1")]
    pub(crate) namespace: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DescribeNamespaceResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) namespace_info: Option<NamespaceInfo>,
}

/// `google.rpc.Status`, as the header `grpc-status-details-bin` carries it.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct RpcStatus {
    #[prost(message, repeated, tag = "3")]
    pub(crate) details: Vec<Any>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct WorkflowExecutionAlreadyStartedFailure {
    #[prost(string, tag = "1")]
    pub(crate) start_request_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct NotFoundFailure {
    #[prost(string, tag = "1")]
    pub(crate) current_cluster: String,
    #[prost(string, tag = "2")]
    pub(crate) active_cluster: String,
}
