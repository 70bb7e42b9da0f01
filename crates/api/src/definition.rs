//! Definitions and their versions.

use leasehold_core::{DefinitionId, Timestamp, VersionBody, VersionId, WorkspaceId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A definition to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewDefinition {
    /// Its name, unique in the workspace.
    #[schema(
        min_length = 1,
        max_length = 200,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*[^\u0000-\u001f\u007f-\u009f\s][^\u0000-\u001f\u007f-\u009f]*$",
        example = "order"
    )]
    pub name: String,
}

/// A workflow that a workspace owns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Definition {
    /// Its id.
    #[schema(value_type = String, format = Uuid)]
    pub id: DefinitionId,
    /// Whose it is.
    #[schema(value_type = String, format = Uuid)]
    pub workspace: WorkspaceId,
    /// Its name.
    pub name: String,
    /// The version that new requests run; absent before the first is published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    pub current_version: Option<VersionId>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

/// A version to publish.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewVersion {
    /// What it runs: `{"graph": {…}}` or `{"binding": {…}}`.
    #[schema(value_type = BodyDocument)]
    pub body: VersionBody,
    /// The JSON Schema that params must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub params_schema: Option<Value>,
    /// How long an execution may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 31_622_400_000u64)]
    pub execution_timeout_ms: Option<u64>,
}

/// One published form of a definition. It never changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Version {
    /// Its id.
    #[schema(value_type = String, format = Uuid)]
    pub id: VersionId,
    /// The definition.
    #[schema(value_type = String, format = Uuid)]
    pub definition: DefinitionId,
    /// 1, 2, 3 … within the definition.
    pub number: u32,
    /// What it runs.
    #[schema(value_type = BodyDocument)]
    pub body: VersionBody,
    /// The JSON Schema that params must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub params_schema: Option<Value>,
    /// How long an execution may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_timeout_ms: Option<u64>,
    /// When it was published.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

/// What a version runs: a graph that Leasehold runs, or a binding to a workflow that the user's own Temporal workers serve.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[allow(
    dead_code,
    missing_docs,
    reason = "describes a type of the core in the API's documentation"
)]
pub enum BodyDocument {
    Graph(GraphDocument),
    Binding(BindingDocument),
}

/// A workflow type and the task queue where workers ask for it.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[allow(
    dead_code,
    missing_docs,
    reason = "describes a type of the core in the API's documentation"
)]
pub struct BindingDocument {
    #[schema(
        min_length = 1,
        max_length = 128,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*[^\u0000-\u001f\u007f-\u009f\s][^\u0000-\u001f\u007f-\u009f]*$",
        example = "Order"
    )]
    workflow_type: String,
    #[schema(
        min_length = 1,
        max_length = 128,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*[^\u0000-\u001f\u007f-\u009f\s][^\u0000-\u001f\u007f-\u009f]*$",
        example = "orders"
    )]
    task_queue: String,
}

/// Nodes, and what waits for what.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[allow(
    dead_code,
    missing_docs,
    reason = "describes a type of the core in the API's documentation"
)]
pub struct GraphDocument {
    #[schema(min_items = 1, max_items = 1000)]
    nodes: Vec<NodeDocument>,
    #[schema(max_items = 5000)]
    edges: Option<Vec<EdgeDocument>>,
}

/// One piece of work.
#[derive(ToSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[allow(
    dead_code,
    missing_docs,
    reason = "describes a type of the core in the API's documentation"
)]
pub enum NodeDocument {
    Task {
        #[schema(min_length = 1, max_length = 128)]
        id: String,
        #[schema(min_length = 1, max_length = 128)]
        queue: String,
    },
    Http {
        #[schema(min_length = 1, max_length = 128)]
        id: String,
        method: Option<String>,
        url: String,
    },
    Delay {
        #[schema(min_length = 1, max_length = 128)]
        id: String,
        #[schema(maximum = 31_622_400_000u64)]
        milliseconds: u64,
    },
}

/// `to` starts after `from` has completed.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[allow(
    dead_code,
    missing_docs,
    reason = "describes a type of the core in the API's documentation"
)]
pub struct EdgeDocument {
    from: String,
    to: String,
}
