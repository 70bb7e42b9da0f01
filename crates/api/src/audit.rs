//! JSON of the audit log.

use leasehold_core::{AuditId, KeyId, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A change to a key, a workspace, a limit, a queue or a definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Id; a later entry has a higher one.
    #[schema(value_type = String, format = Uuid)]
    pub id: AuditId,
    /// When the change was made.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// The key that made the change; absent for a local command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    pub key: Option<KeyId>,
    /// The name of the key when it made the change; `local` for a local command.
    pub actor: String,
    /// What was done, for example `key_create` or `workspace_update`.
    pub action: String,
    /// The workspace that was changed, or that owns what was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    pub workspace: Option<WorkspaceId>,
    /// What was changed: the id of a key, a workspace or a definition, the name of a queue, or `all` for the limit of all queues.
    pub target: String,
    /// The new values.
    #[schema(value_type = Value)]
    pub details: Value,
}
