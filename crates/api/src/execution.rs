//! JSON of executions and their nodes.

use leasehold_core::graph::NodeState;
use leasehold_core::{
    DefinitionId, ExecutionId, ExecutionStatus, JobId, JsonText, Named, RequestId, Timestamp,
    VersionId, WorkspaceId,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One run of a version in the engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Execution {
    /// Id; its workflow id in Temporal is `execution-{id}`.
    #[schema(value_type = String, format = Uuid)]
    pub id: ExecutionId,
    /// The workspace of the execution.
    #[schema(value_type = String, format = Uuid)]
    pub workspace: WorkspaceId,
    /// The request it was created for.
    #[schema(value_type = String, format = Uuid)]
    pub request: RequestId,
    /// The definition it runs.
    #[schema(value_type = String, format = Uuid)]
    pub definition: DefinitionId,
    /// The version it runs.
    #[schema(value_type = String, format = Uuid)]
    pub version: VersionId,
    /// Status; a RUNNING execution holds a slot.
    #[schema(value_type = ExecutionStatusName)]
    pub status: Named<ExecutionStatus>,
    /// When the execution was last admitted.
    #[schema(value_type = String, format = DateTime)]
    pub started_at: Timestamp,
    /// When the execution ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub finished_at: Option<Timestamp>,
    /// The error of a failed execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether payloads are hidden from the key of this call: `error` is absent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub payload_hidden: bool,
}

/// The status of an execution.
#[derive(ToSchema)]
#[schema(rename_all = "UPPERCASE")]
#[allow(
    dead_code,
    missing_docs,
    reason = "describes a type of the core in the API's documentation"
)]
pub enum ExecutionStatusName {
    Running,
    Completed,
    Failed,
    Cancelled,
}

/// An execution's graph with the state of each node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExecutionGraph {
    /// The execution.
    #[schema(value_type = String, format = Uuid)]
    pub execution: ExecutionId,
    /// The version that has the graph.
    #[schema(value_type = String, format = Uuid)]
    pub version: VersionId,
    /// The nodes, in the order of the graph's list; empty if the version is a binding.
    pub nodes: Vec<ExecutionNode>,
    /// The dependencies between nodes.
    pub edges: Vec<ExecutionEdge>,
}

/// A node of an execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExecutionNode {
    /// Id within the graph.
    pub id: String,
    /// Type, as in the graph.
    #[serde(rename = "type")]
    pub kind: String,
    /// State.
    #[schema(value_type = NodeStateName)]
    pub state: NodeState,
    /// The queue of its job, for a task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The job that runs the node, if there is one and the engine knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>)]
    pub job: Option<JobId>,
    /// Number of attempts started.
    pub attempts: u32,
    /// The output of a completed node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub output: Option<JsonText>,
    /// Whether the output is omitted because the outputs of all nodes are too large together; the route of the single node returns it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub output_omitted: bool,
    /// The last error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether payloads are hidden from the key of this call: `output` and `error` are absent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub payload_hidden: bool,
    /// When the node started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Timestamp>,
    /// When the node ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub finished_at: Option<Timestamp>,
}

/// A dependency: `to` starts after `from` has completed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExecutionEdge {
    /// The node that runs first.
    pub from: String,
    /// The node that waits.
    pub to: String,
}

/// The state of a node.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[allow(
    dead_code,
    missing_docs,
    reason = "describes a type of the core in the API's documentation"
)]
pub enum NodeStateName {
    Waiting,
    Running,
    Completed,
    Failed,
    Cancelled,
}
