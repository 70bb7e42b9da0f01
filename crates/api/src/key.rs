//! Keys that open the API.

use leasehold_core::{KeyId, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A key to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewKey {
    /// What people call it.
    #[schema(
        min_length = 1,
        max_length = 200,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*[^\u0000-\u001f\u007f-\u009f\s][^\u0000-\u001f\u007f-\u009f]*$",
        example = "billing workers"
    )]
    pub name: String,
    /// What it opens.
    pub scope: Scope,
}

/// What a key opens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    deny_unknown_fields,
    try_from = "ScopeDocument"
)]
pub enum Scope {
    /// Everything.
    Admin,
    /// One workspace: its definitions, requests and executions.
    Workspace {
        /// Which.
        #[schema(value_type = String, format = Uuid)]
        workspace: WorkspaceId,
    },
    /// The jobs of named queues.
    Worker {
        /// The queues.
        #[schema(min_items = 1, max_items = 100)]
        queues: Vec<String>,
    },
}

/// A scope as it is sent: read field by field, so that what is wrong can be named.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScopeDocument {
    kind: ScopeKind,
    workspace: Option<WorkspaceId>,
    queues: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ScopeKind {
    Admin,
    Workspace,
    Worker,
}

impl TryFrom<ScopeDocument> for Scope {
    type Error = &'static str;

    fn try_from(from: ScopeDocument) -> Result<Self, Self::Error> {
        match (from.kind, from.workspace, from.queues) {
            (ScopeKind::Admin, None, None) => Ok(Self::Admin),
            (ScopeKind::Workspace, Some(workspace), None) => Ok(Self::Workspace { workspace }),
            (ScopeKind::Worker, None, Some(queues)) => Ok(Self::Worker { queues }),
            (ScopeKind::Admin, ..) => Err("an admin's key has neither `workspace` nor `queues`"),
            (ScopeKind::Workspace, ..) => Err("a workspace's key has `workspace` and no `queues`"),
            (ScopeKind::Worker, ..) => Err("a worker's key has `queues` and no `workspace`"),
        }
    }
}

/// A key; its secret is not kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Key {
    /// Its id.
    #[schema(value_type = String, format = Uuid)]
    pub id: KeyId,
    /// What people call it.
    pub name: String,
    /// What it opens.
    pub scope: Scope,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When it was revoked; it opens nothing from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub revoked_at: Option<Timestamp>,
}

/// A key that was just made, with its secret: it is shown this once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MadeKey {
    /// The key.
    pub key: Key,
    /// What to send as `Authorization: Bearer …`.
    pub secret: String,
}

impl std::fmt::Debug for MadeKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MadeKey")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_scope_is_read_as_it_is_written() {
        let workspace = serde_json::from_str("\"00000000-0000-0000-0000-000000000001\"").unwrap();
        for scope in [
            Scope::Admin,
            Scope::Workspace { workspace },
            Scope::Worker {
                queues: vec!["emails".to_owned()],
            },
        ] {
            let text = serde_json::to_string(&scope).unwrap();
            assert_eq!(serde_json::from_str::<Scope>(&text).unwrap(), scope);
        }
    }

    #[test]
    fn a_scope_that_says_too_much_or_too_little_is_refused() {
        for text in [
            r#"{"kind": "admin", "queues": ["a"]}"#,
            r#"{"kind": "workspace"}"#,
            r#"{"kind": "worker"}"#,
            r#"{"kind": "worker", "queues": ["a"], "workspace": "00000000-0000-0000-0000-000000000001"}"#,
            r#"{"kind": "root"}"#,
            r#"{"kind": "admin", "more": 1}"#,
        ] {
            assert!(serde_json::from_str::<Scope>(text).is_err(), "{text}");
        }
    }
}
