//! Executions.

use leasehold_core::{
    DefinitionId, ExecutionId, ExecutionStatus, RequestId, Timestamp, VersionId, WorkspaceId,
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
