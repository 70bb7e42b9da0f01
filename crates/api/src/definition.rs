//! Definitions and their versions.

use leasehold_core::{DefinitionId, Timestamp, VersionBody, VersionId, WorkspaceId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
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

/// One piece of work. A node is given the params and the outputs of the nodes right before it, `{"params": …, "nodes": {id: …}}`, or what its
/// `input` makes of them: in it `{"$from": "/params/…"}` or `{"$from": "/nodes/{id}/…"}` stands for what is there.
#[derive(ToSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[allow(
    dead_code,
    missing_docs,
    reason = "describes a type of the core in the API's documentation"
)]
pub enum NodeDocument {
    /// A job on a named queue, done by whoever claims it. Its payload is `{"execution_id", "workspace_id", "node_id", "input"}`, its result the node's output.
    Task {
        #[schema(min_length = 1, max_length = 128, example = "charge")]
        id: String,
        #[schema(min_length = 1, max_length = 128, example = "payments")]
        queue: String,
        /// What sort of work it is; the node's id unless said.
        #[schema(min_length = 1, max_length = 128)]
        kind: Option<String>,
        input: Option<Value>,
        /// How long one attempt may take.
        #[schema(minimum = 1, maximum = 31_622_400_000u64)]
        timeout_ms: Option<u64>,
        retry: Option<NodeRetryDocument>,
    },
    /// An HTTP call. What it sends is its input, its output `{"status", "headers", "body"}`. Addresses that are not public are not called.
    Http {
        #[schema(min_length = 1, max_length = 128)]
        id: String,
        /// GET unless said.
        method: Option<MethodName>,
        /// `{/params/…}` and `{/nodes/{id}/…}` after the host stand for what is there.
        #[schema(
            min_length = 8,
            max_length = 8192,
            example = "https://example.com/orders/{/params/order}"
        )]
        url: String,
        headers: Option<BTreeMap<String, String>>,
        /// What is sent; only with POST, PUT and PATCH.
        input: Option<Value>,
        /// How long one attempt may take; 30 seconds unless said.
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

/// How often and when a node is tried again.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[allow(
    dead_code,
    missing_docs,
    reason = "describes a type of the core in the API's documentation"
)]
pub struct NodeRetryDocument {
    /// Attempts before it is given up; 25 unless said.
    #[schema(minimum = 1, maximum = 32767)]
    max_attempts: Option<u32>,
    /// The wait after the first failure; a second unless said.
    #[schema(maximum = 31_622_400_000u64)]
    base_ms: Option<u64>,
    /// By how much each wait is longer than the last; 2 unless said.
    #[schema(minimum = 1.0, maximum = 1000.0)]
    factor: Option<f64>,
    /// The longest wait; five minutes unless said.
    #[schema(maximum = 31_622_400_000u64)]
    max_ms: Option<u64>,
    /// How much of a wait is random; 0.2 unless said.
    #[schema(minimum = 0.0, maximum = 1.0)]
    jitter: Option<f64>,
}

/// A method of an HTTP call.
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
