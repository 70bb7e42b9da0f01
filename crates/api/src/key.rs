//! JSON of API keys.

use leasehold_core::{KeyId, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A key to create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewKey {
    /// Name, for people.
    #[schema(
        min_length = 1,
        max_length = 200,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*[^\u0000-\u001f\u007f-\u009f\s][^\u0000-\u001f\u007f-\u009f]*$",
        example = "billing workers"
    )]
    pub name: String,
    /// What the key gives access to.
    pub scope: Scope,
    /// Whether the key may change things. Default: `full`.
    #[serde(default)]
    pub access: Access,
    /// Whether the key sees payloads. Default: `shown`.
    #[serde(default)]
    pub payloads: Payloads,
    /// How long the key is valid, in milliseconds. Default: until it is revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1_000, maximum = 316_224_000_000u64)]
    pub expires_in_ms: Option<u64>,
}

impl NewKey {
    /// Describes a key with all rights of a scope that does not expire.
    pub fn full(name: impl Into<String>, scope: Scope) -> Self {
        Self {
            name: name.into(),
            scope,
            access: Access::Full,
            payloads: Payloads::Shown,
            expires_in_ms: None,
        }
    }
}

/// Whether a key may change things.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// It may read and change.
    #[default]
    Full,
    /// It may only read.
    Read,
}

/// Whether a key sees payloads: params, payloads, results, outputs, progress and error texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Payloads {
    /// It sees them.
    #[default]
    Shown,
    /// Responses leave them out and contain `payload_hidden: true`.
    Hidden,
}

/// What a key gives access to.
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
        /// The workspace.
        #[schema(value_type = String, format = Uuid)]
        workspace: WorkspaceId,
    },
    /// The jobs of named queues.
    Worker {
        /// The queues.
        #[schema(min_items = 1, max_items = 100)]
        queues: Vec<String>,
    },
    /// The metrics for Prometheus, and nothing else.
    Metrics,
}

/// A scope as sent: read field by field, so that an error can name the field.
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
    Metrics,
}

impl TryFrom<ScopeDocument> for Scope {
    type Error = &'static str;

    fn try_from(from: ScopeDocument) -> Result<Self, Self::Error> {
        match (from.kind, from.workspace, from.queues) {
            (ScopeKind::Admin, None, None) => Ok(Self::Admin),
            (ScopeKind::Workspace, Some(workspace), None) => Ok(Self::Workspace { workspace }),
            (ScopeKind::Worker, None, Some(queues)) => Ok(Self::Worker { queues }),
            (ScopeKind::Metrics, None, None) => Ok(Self::Metrics),
            (ScopeKind::Admin, ..) => Err("an admin key takes neither `workspace` nor `queues`"),
            (ScopeKind::Metrics, ..) => Err("a metrics key takes neither `workspace` nor `queues`"),
            (ScopeKind::Workspace, ..) => {
                Err("a workspace key requires `workspace` and takes no `queues`")
            }
            (ScopeKind::Worker, ..) => {
                Err("a worker key requires `queues` and takes no `workspace`")
            }
        }
    }
}

/// An API key, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Key {
    /// Id.
    #[schema(value_type = String, format = Uuid)]
    pub id: KeyId,
    /// Name, for people.
    pub name: String,
    /// What the key gives access to.
    pub scope: Scope,
    /// Whether the key may change things.
    pub access: Access,
    /// Whether the key sees payloads.
    pub payloads: Payloads,
    /// When the key was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When the key was revoked; it has been invalid since then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub revoked_at: Option<Timestamp>,
    /// When the key expires, or expired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    /// Whether the key has expired, by the clock of the store.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub expired: bool,
    /// When the key was last used; may be a minute old.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_used_at: Option<Timestamp>,
    /// The key that replaces this one, if it was rotated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    pub successor: Option<KeyId>,
}

/// How to rotate a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RotationOptions {
    /// How long the old key stays valid, in milliseconds. Default: 24 hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 31_622_400_000u64)]
    pub overlap_ms: Option<u64>,
    /// How long the new key is valid, in milliseconds. Default: as long as the old key was when it was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1_000, maximum = 316_224_000_000u64)]
    pub expires_in_ms: Option<u64>,
}

/// A rotated key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RotatedKey {
    /// The old key; it expires after the overlap.
    pub old: Key,
    /// The new key.
    pub key: Key,
    /// The secret of the new key, which is returned only once.
    pub secret: String,
}

impl std::fmt::Debug for RotatedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RotatedKey")
            .field("old", &self.old)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// A created key with its secret, which is returned only once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreatedKey {
    /// The key.
    pub key: Key,
    /// The secret to send as `Authorization: Bearer …`.
    pub secret: String,
}

impl std::fmt::Debug for CreatedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CreatedKey")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn scope_round_trips_through_json() {
        let workspace = serde_json::from_str("\"00000000-0000-0000-0000-000000000001\"").unwrap();
        for scope in [
            Scope::Admin,
            Scope::Workspace { workspace },
            Scope::Worker {
                queues: vec!["emails".to_owned()],
            },
            Scope::Metrics,
        ] {
            let text = serde_json::to_string(&scope).unwrap();
            assert_eq!(serde_json::from_str::<Scope>(&text).unwrap(), scope);
        }
    }

    #[test]
    fn scope_with_missing_or_extra_fields_is_rejected() {
        for text in [
            r#"{"kind": "admin", "queues": ["a"]}"#,
            r#"{"kind": "metrics", "queues": ["a"]}"#,
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
