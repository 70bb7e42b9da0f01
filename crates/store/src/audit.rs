//! The audit log: which key made which change, to what and when. Operations that make such a change take an [`Actor`] and record an entry in the same
//! transaction. No entry contains a secret, params or payloads.

use crate::definition::{Definition, QueueGrants, Version};
use crate::key::Key;
use crate::queue::{QueueChange, QueueOwnership, SharedWith};
use crate::store_trait::store_trait;
use crate::workspace::{Workspace, WorkspaceChange};
use crate::{Page, Result};
use leasehold_core::duration::millis;
use leasehold_core::key::KeyScope;
use leasehold_core::retry::Backoff;
use leasehold_core::{AuditId, DefinitionId, KeyId, Timestamp, WorkspaceId};
use serde_json::{Map, Value, json};

store_trait! {
    /// The audit log.
    pub trait AuditStore, observed by AuditObserver {
        /// Lists entries by id, newest first. The cost does not grow with the entries of other workspaces if the filter names a workspace, nor
        /// with those of other keys if it names a key.
        async fn audit_list(
            &self,
            filter: &AuditFilter,
            page: Page<AuditId>,
        ) -> Result<Vec<AuditEntry>>;

        /// Deletes up to `limit` entries that were recorded before a time, oldest first, and returns how many.
        async fn audit_prune(&self, before: Timestamp, limit: u32) -> Result<u64>;
    }
}

/// Who makes a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Actor {
    /// A command on the machine of the store, without a key: the first start or `leasehold admin-key`.
    Local,
    /// The holder of a key.
    Key {
        /// The key.
        id: KeyId,
        /// Its name at the time of the change.
        name: String,
    },
}

impl Actor {
    /// Returns the name of the key, or `local`.
    pub fn name(&self) -> &str {
        match self {
            Self::Local => "local",
            Self::Key { name, .. } => name,
        }
    }

    /// Returns the key.
    pub const fn key(&self) -> Option<KeyId> {
        match self {
            Self::Local => None,
            Self::Key { id, .. } => Some(*id),
        }
    }

    /// Builds the actor that an entry names.
    pub fn stored(key: Option<KeyId>, name: String) -> Self {
        key.map_or(Self::Local, |id| Self::Key { id, name })
    }
}

/// An entry of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its id.
    pub id: AuditId,
    /// When the change was made, by the store's clock.
    pub at: Timestamp,
    /// Who made it.
    pub actor: Actor,
    /// What was done. A text, because a newer version may record more actions.
    pub action: String,
    /// The workspace that was changed, or that owns what was changed.
    pub workspace: Option<WorkspaceId>,
    /// What was changed: the id of a key, a workspace or a definition, the name of a queue, or `all` for the limit of all queues.
    pub target: String,
    /// The new values.
    pub details: Value,
}

/// Selects entries; a field that is none selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Entries of this workspace.
    pub workspace: Option<WorkspaceId>,
    /// Changes by this key.
    pub key: Option<KeyId>,
    /// Changes of this kind.
    pub action: Option<String>,
}

impl AuditFilter {
    /// Whether the filter selects an entry.
    pub fn selects(&self, entry: &AuditEntry) -> bool {
        let workspace = self.workspace.is_none() || self.workspace == entry.workspace;
        let key = self.key.is_none() || self.key == entry.actor.key();
        let action = self.action.is_none() || self.action.as_ref() == Some(&entry.action);
        workspace && key && action
    }
}

/// The actions that are recorded, and their names.
macro_rules! actions {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// An action that is recorded.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum AuditAction {
            $($(#[$doc])* $name,)*
        }

        impl AuditAction {
            /// All actions.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Returns its name.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

actions! {
    /// A key was created.
    KeyCreate = "key_create";
    /// A key got a successor.
    KeyRotate = "key_rotate";
    /// A key was revoked.
    KeyRevoke = "key_revoke";
    /// A workspace was created.
    WorkspaceCreate = "workspace_create";
    /// The plan, a limit or the pause of a workspace was changed.
    WorkspaceUpdate = "workspace_update";
    /// A workspace was deleted.
    WorkspaceDelete = "workspace_delete";
    /// A definition was created.
    DefinitionCreate = "definition_create";
    /// A definition was deleted.
    DefinitionDelete = "definition_delete";
    /// A version was published.
    VersionPublish = "version_publish";
    /// The settings of a queue were changed.
    QueueUpdate = "queue_update";
    /// The sharing of a queue was changed.
    QueueShare = "queue_share";
    /// The limit of running jobs of all queues was changed.
    JobLimitSet = "job_limit_set";
}

/// A change to record: an entry without id, time and actor. The constructors define what each action records, the same in every store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRecord {
    /// What is done.
    pub action: AuditAction,
    /// The workspace.
    pub workspace: Option<WorkspaceId>,
    /// What is changed.
    pub target: String,
    /// The new values.
    pub details: Value,
}

impl AuditRecord {
    fn new(
        action: AuditAction,
        workspace: Option<WorkspaceId>,
        target: impl ToString,
        details: Value,
    ) -> Self {
        Self {
            action,
            workspace,
            target: target.to_string(),
            details,
        }
    }

    /// A created key.
    pub fn key_create(key: &Key) -> Self {
        Self::of_key(AuditAction::KeyCreate, key, key_details(key))
    }

    /// A key that got a successor.
    pub fn key_rotate(old: &Key, successor: &Key) -> Self {
        let mut details = key_details(old);
        let expires_at = successor.expires_at.map(|at| at.to_string());
        details.insert("successor".to_owned(), json!(successor.id.to_string()));
        details.insert("successor_expires_at".to_owned(), json!(expires_at));
        Self::of_key(AuditAction::KeyRotate, old, details)
    }

    /// A revoked key.
    pub fn key_revoke(key: &Key) -> Self {
        let details = Map::from_iter([("name".to_owned(), json!(key.name))]);
        Self::of_key(AuditAction::KeyRevoke, key, details)
    }

    fn of_key(action: AuditAction, key: &Key, details: Map<String, Value>) -> Self {
        let workspace = key.rights.scope.workspace();
        Self::new(action, workspace, key.id, Value::Object(details))
    }

    /// A created workspace.
    pub fn workspace_create(workspace: &Workspace) -> Self {
        let details = json!({
            "name": workspace.name,
            "plan": workspace.plan.as_str(),
            "max_concurrent_executions": workspace.limit_override,
        });
        let action = AuditAction::WorkspaceCreate;
        Self::new(action, Some(workspace.id), workspace.id, details)
    }

    /// A change of a workspace: only what was changed.
    pub fn workspace_update(workspace: &Workspace, change: &WorkspaceChange) -> Self {
        let WorkspaceChange {
            plan,
            limit_override,
            max_pending_override,
            max_open_bytes_override,
            paused,
        } = *change;
        let details = changed([
            ("name", Some(json!(workspace.name))),
            ("plan", plan.map(|plan| json!(plan.as_str()))),
            (
                "max_concurrent_executions",
                limit_override.map(|limit| json!(limit)),
            ),
            (
                "max_pending",
                max_pending_override.map(|limit| json!(limit)),
            ),
            (
                "max_open_bytes",
                max_open_bytes_override.map(|limit| json!(limit)),
            ),
            ("paused", paused.map(Value::from)),
        ]);
        let action = AuditAction::WorkspaceUpdate;
        Self::new(action, Some(workspace.id), workspace.id, details)
    }

    /// A deleted workspace.
    pub fn workspace_delete(id: WorkspaceId, name: &str) -> Self {
        let details = json!({ "name": name });
        Self::new(AuditAction::WorkspaceDelete, Some(id), id, details)
    }

    /// A created definition.
    pub fn definition_create(definition: &Definition) -> Self {
        let details = json!({ "name": definition.name });
        let (action, workspace) = (AuditAction::DefinitionCreate, definition.workspace);
        Self::new(action, Some(workspace), definition.id, details)
    }

    /// A deleted definition.
    pub fn definition_delete(workspace: WorkspaceId, id: DefinitionId, name: &str) -> Self {
        let details = json!({ "name": name });
        Self::new(AuditAction::DefinitionDelete, Some(workspace), id, details)
    }

    /// A published version, with the queues that the publish created and shared.
    pub fn version_publish(version: &Version, grants: &QueueGrants) -> Self {
        let QueueGrants { created, shared } = grants;
        let names = |queues: &[String]| (!queues.is_empty()).then(|| json!(queues));
        let details = changed([
            ("version", Some(json!(version.id.to_string()))),
            ("number", Some(json!(version.number))),
            ("queues_created", names(created)),
            ("queues_shared", names(shared)),
        ]);
        let (action, workspace) = (AuditAction::VersionPublish, version.workspace);
        Self::new(action, Some(workspace), version.definition, details)
    }

    /// A change of a queue: only what was changed.
    pub fn queue_update(name: &str, change: &QueueChange) -> Self {
        let QueueChange {
            limit,
            group_limit,
            paused,
            keep_completed,
            lease,
            retry,
            timeout,
        } = *change;
        let details = changed([
            ("limit", limit.map(|limit| json!(limit))),
            ("group_limit", group_limit.map(|limit| json!(limit))),
            ("paused", paused.map(Value::from)),
            ("keep_completed", keep_completed.map(Value::from)),
            ("lease_ms", lease.map(|lease| json!(millis(lease)))),
            ("max_attempts", retry.map(|retry| json!(retry.max_attempts))),
            ("backoff", retry.map(|retry| backoff(retry.backoff))),
            (
                "timeout_ms",
                timeout.map(|timeout| json!(timeout.map(millis))),
            ),
        ]);
        Self::new(AuditAction::QueueUpdate, None, name, details)
    }

    /// A change of whom a queue is shared with: the whole new sharing.
    pub fn queue_share(shared: &QueueOwnership) -> Self {
        let details = match &shared.shared_with {
            SharedWith::All => json!({ "shared_with_all": true }),
            SharedWith::Workspaces(names) => json!({ "workspaces": names }),
        };
        Self::new(AuditAction::QueueShare, None, &shared.queue, details)
    }

    /// A change of the limit of running jobs of all queues.
    pub fn job_limit_set(limit: Option<u32>) -> Self {
        let details = json!({ "limit": limit });
        Self::new(AuditAction::JobLimitSet, None, "all", details)
    }
}

/// Returns the fields that have a value. The callers destructure their change without `..`, so that a new field cannot be forgotten.
fn changed<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    let present = fields
        .into_iter()
        .filter_map(|(field, value)| Some((field.to_owned(), value?)));
    Value::Object(present.collect())
}

fn backoff(backoff: Backoff) -> Value {
    let Backoff {
        base,
        factor,
        max,
        jitter,
    } = backoff;
    json!({ "base_ms": millis(base), "factor": factor, "max_ms": millis(max), "jitter": jitter })
}

/// Describes a key: name, rights and expiry, never its hash.
fn key_details(key: &Key) -> Map<String, Value> {
    let rights = &key.rights;
    let mut details = Map::from_iter([
        ("name".to_owned(), json!(key.name)),
        ("kind".to_owned(), json!(rights.scope.kind())),
        ("access".to_owned(), json!(rights.access.as_str())),
        ("payloads".to_owned(), json!(rights.payloads.as_str())),
    ]);
    if let KeyScope::Worker { queues } = &rights.scope {
        details.insert("queues".to_owned(), json!(queues));
    }
    if let Some(at) = key.expires_at {
        details.insert("expires_at".to_owned(), json!(at.to_string()));
    }
    details
}
