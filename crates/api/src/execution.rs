//! Executions.

use leasehold_core::graph::NodeState;
use leasehold_core::{
    DefinitionId, ExecutionId, ExecutionStatus, JobId, JsonText, RequestId, Timestamp, VersionId,
    WorkspaceId,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One run of a version in the engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Execution {
    /// Its id; in Temporal it runs as `execution-{id}`.
    #[schema(value_type = String, format = Uuid)]
    pub id: ExecutionId,
    /// Whose it is.
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
    /// Where it is; RUNNING holds a slot.
    #[schema(value_type = ExecutionStatusName)]
    pub status: ExecutionStatus,
    /// When it was admitted, or taken up again.
    #[schema(value_type = String, format = DateTime)]
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub finished_at: Option<Timestamp>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Where an execution is.
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

/// An execution's graph with where each node is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExecutionGraph {
    /// The execution.
    #[schema(value_type = String, format = Uuid)]
    pub execution: ExecutionId,
    /// The version whose graph it is.
    #[schema(value_type = String, format = Uuid)]
    pub version: VersionId,
    /// Its nodes in the order of the graph's list; none where the version is a binding.
    pub nodes: Vec<ExecutionNode>,
    /// What waits for what.
    pub edges: Vec<ExecutionEdge>,
}

/// A node of an execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExecutionNode {
    /// Its id.
    pub id: String,
    /// Its type, as in the graph.
    #[serde(rename = "type")]
    pub kind: String,
    /// Where it is.
    #[schema(value_type = NodeStateName)]
    pub state: NodeState,
    /// The queue of its job, if it is a task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The job that does it, where one does and the engine knows which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>)]
    pub job: Option<JobId>,
    /// How often somebody began to work on it.
    pub attempts: u32,
    /// What it came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub output: Option<JsonText>,
    /// Whether its output is left out here, because all outputs together are too large; the node by itself is shown with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub output_omitted: bool,
    /// What went wrong last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When it was begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub finished_at: Option<Timestamp>,
}

/// `to` starts after `from` has completed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExecutionEdge {
    /// The node that comes first.
    pub from: String,
    /// The node that waits.
    pub to: String,
}

/// Where a node is.
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
