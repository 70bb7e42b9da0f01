//! JSON of definitions and versions.

use leasehold_core::{DefinitionId, Timestamp, VersionBody, VersionId, WorkspaceId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A definition to create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewDefinition {
    /// Name, unique in the workspace.
    #[schema(
        min_length = 1,
        max_length = 200,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*[^\u0000-\u001f\u007f-\u009f\s][^\u0000-\u001f\u007f-\u009f]*$",
        example = "order"
    )]
    pub name: String,
}

/// A workflow owned by a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Definition {
    /// Id.
    #[schema(value_type = String, format = Uuid)]
    pub id: DefinitionId,
    /// The workspace that owns the definition.
    #[schema(value_type = String, format = Uuid)]
    pub workspace: WorkspaceId,
    /// Name, unique in the workspace.
    pub name: String,
    /// The version that new requests run; absent before the first one is published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    pub current_version: Option<VersionId>,
    /// When the definition was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

/// A version to publish.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewVersion {
    /// What the version runs: `{"graph": {…}}` or `{"binding": {…}}`.
    #[schema(value_type = BodyDocument)]
    pub body: VersionBody,
    /// JSON Schema that the params of requests must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub params_schema: Option<Value>,
    /// Time limit of an execution, in milliseconds. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 31_622_400_000u64)]
    pub execution_timeout_ms: Option<u64>,
}

/// A published version of a definition. It never changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Version {
    /// Id.
    #[schema(value_type = String, format = Uuid)]
    pub id: VersionId,
    /// The definition of the version.
    #[schema(value_type = String, format = Uuid)]
    pub definition: DefinitionId,
    /// 1, 2, 3 … within the definition.
    pub number: u32,
    /// What the version runs.
    #[schema(value_type = BodyDocument)]
    pub body: VersionBody,
    /// JSON Schema that the params of requests must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub params_schema: Option<Value>,
    /// Time limit of an execution, in milliseconds; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_timeout_ms: Option<u64>,
    /// When the version was published.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

/// What a version runs: a graph that Leasehold runs, or a binding to a workflow of your own Temporal workers.
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

/// A workflow type and the Temporal task queue that its workers poll.
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

/// A graph: nodes and the dependencies between them.
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

/// A node of a graph. Its input is `{"params": …, "nodes": {id: …}}` with the params of the request and the outputs of its direct predecessors,
/// or the `input` template if there is one. In a template `{"$from": "/params/…"}` and `{"$from": "/nodes/{id}/…"}` are replaced with the value at that path.
#[derive(ToSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[allow(
    dead_code,
    missing_docs,
    reason = "describes a type of the core in the API's documentation"
)]
pub enum NodeDocument {
    /// A job on a named queue, run by a worker of yours. Its payload is `{"execution_id", "workspace_id", "node_id", "input"}`, its result is the node's output.
    Task {
        #[schema(min_length = 1, max_length = 128, example = "charge")]
        id: String,
        #[schema(min_length = 1, max_length = 128, example = "payments")]
        queue: String,
        /// Job kind, by which workers select the handler. Default: the node's id.
        #[schema(min_length = 1, max_length = 128)]
        kind: Option<String>,
        input: Option<Value>,
        /// Time limit of one attempt, in milliseconds.
        #[schema(minimum = 1, maximum = 31_622_400_000u64)]
        timeout_ms: Option<u64>,
        retry: Option<NodeRetryDocument>,
    },
    /// An HTTP call. It sends its input; its output is `{"status", "headers", "body"}`. Only public addresses are called.
    Http {
        #[schema(min_length = 1, max_length = 128)]
        id: String,
        /// HTTP method. Default: GET.
        method: Option<MethodName>,
        /// `{/params/…}` and `{/nodes/{id}/…}` after the host are replaced with the value at that path.
        #[schema(
            min_length = 8,
            max_length = 8192,
            example = "https://example.com/orders/{/params/order}"
        )]
        url: String,
        headers: Option<BTreeMap<String, String>>,
        /// The body to send; only with POST, PUT and PATCH.
        input: Option<Value>,
        /// Time limit of one attempt, in milliseconds. Default: 30 seconds.
        #[schema(minimum = 1, maximum = 600_000)]
        timeout_ms: Option<u64>,
        retry: Option<NodeRetryDocument>,
    },
    /// A pause.
    Delay {
        #[schema(min_length = 1, max_length = 128)]
        id: String,
        #[schema(maximum = 31_622_400_000u64)]
        milliseconds: u64,
    },
}

/// The retry policy of a node.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[allow(
    dead_code,
    missing_docs,
    reason = "describes a type of the core in the API's documentation"
)]
pub struct NodeRetryDocument {
    /// Maximum number of attempts. Default: 25.
    #[schema(minimum = 1, maximum = 32767)]
    max_attempts: Option<u32>,
    /// Delay after the first failure, in milliseconds. Default: 1 second.
    #[schema(maximum = 31_622_400_000u64)]
    base_ms: Option<u64>,
    /// Factor by which the delay grows with each failure. Default: 2.
    #[schema(minimum = 1.0, maximum = 1000.0)]
    factor: Option<f64>,
    /// Longest delay, in milliseconds. Default: 5 minutes.
    #[schema(maximum = 31_622_400_000u64)]
    max_ms: Option<u64>,
    /// Random share of the delay, from 0 to 1. Default: 0.2.
    #[schema(minimum = 0.0, maximum = 1.0)]
    jitter: Option<f64>,
}

/// An HTTP method.
#[derive(ToSchema)]
#[schema(rename_all = "UPPERCASE")]
#[allow(
    dead_code,
    missing_docs,
    reason = "describes a type of the core in the API's documentation"
)]
pub enum MethodName {
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
}

/// A dependency: `to` starts after `from` has completed.
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
