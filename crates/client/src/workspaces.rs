//! Calls about workspaces, keys and the audit log.

use crate::client::Client;
use crate::error::Result;
use crate::list::List;
use leasehold_api::audit::AuditEntry;
use leasehold_api::key::{CreatedKey, Key, NewKey, RotatedKey, RotationOptions};
use leasehold_api::workspace::{NewWorkspace, Workspace, WorkspaceChange, WorkspaceState};
use leasehold_core::{KeyId, WorkspaceId};
use reqwest::Method;

/// A filter of the audit log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Only entries of this workspace.
    pub workspace: Option<WorkspaceId>,
    /// Only changes by this key.
    pub key: Option<KeyId>,
    /// Only changes of this kind.
    pub action: Option<String>,
}

/// # Workspaces, keys and the audit log
impl Client {
    /// Lists all workspaces.
    pub fn workspace_list(&self) -> List<Workspace> {
        List::new(self, &["v1", "workspaces"])
    }

    /// Finds a workspace by name.
    ///
    /// # Errors
    /// Fails if the call fails.
    pub async fn workspace_find(&self, name: &str) -> Result<Option<Workspace>> {
        let named = self.workspace_list().filter("name", Some(name));
        Ok(named.page(None).await?.items.pop())
    }

    /// Creates a workspace.
    ///
    /// # Errors
    /// Fails if the name is taken, a value is invalid, or the call fails.
    pub async fn workspace_create(&self, new: &NewWorkspace) -> Result<Workspace> {
        self.post(&["v1", "workspaces"]).body(new)?.json().await
    }

    /// Returns a workspace with its current usage.
    ///
    /// # Errors
    /// Fails if there is no such workspace, or the call fails.
    pub async fn workspace_get(&self, id: WorkspaceId) -> Result<WorkspaceState> {
        let id = id.to_string();
        self.get(&["v1", "workspaces", &id]).json().await
    }

    /// Updates a workspace.
    ///
    /// # Errors
    /// Fails if there is no such workspace, or the call fails.
    pub async fn workspace_update(
        &self,
        id: WorkspaceId,
        change: &WorkspaceChange,
    ) -> Result<Workspace> {
        let id = id.to_string();
        let call = self.call(Method::PATCH, &["v1", "workspaces", &id]);
        call.body(change)?.json().await
    }

    /// Deletes a workspace.
    ///
    /// # Errors
    /// Fails if there is no such workspace, or the call fails.
    pub async fn workspace_delete(&self, id: WorkspaceId) -> Result<()> {
        let id = id.to_string();
        self.call(Method::DELETE, &["v1", "workspaces", &id])
            .done()
            .await
    }

    /// Returns this client's key, without its secret.
    ///
    /// # Errors
    /// Fails if the call fails.
    pub async fn key_me(&self) -> Result<Key> {
        self.get(&["v1", "me"]).json().await
    }

    /// Lists all keys, revoked and expired ones included.
    pub fn key_list(&self) -> List<Key> {
        List::new(self, &["v1", "keys"])
    }

    /// Creates a key. Only this response contains the secret.
    ///
    /// # Errors
    /// Fails if a value is invalid, or the call fails.
    pub async fn key_create(&self, new: &NewKey) -> Result<CreatedKey> {
        self.post(&["v1", "keys"]).body(new)?.json().await
    }

    /// Returns a key.
    ///
    /// # Errors
    /// Fails if there is no such key, or the call fails.
    pub async fn key_get(&self, id: KeyId) -> Result<Key> {
        let id = id.to_string();
        self.get(&["v1", "keys", &id]).json().await
    }

    /// Revokes a key permanently, unless it is the last administrator key.
    ///
    /// # Errors
    /// Fails if there is no such key, if it is the last administrator key (`last_admin_key`), or the call fails.
    pub async fn key_revoke(&self, id: KeyId) -> Result<Key> {
        let id = id.to_string();
        let call = self.call(Method::DELETE, &["v1", "keys", &id]);
        call.repeatable(true).json().await
    }

    /// Revokes a key permanently, even the last administrator key.
    ///
    /// # Errors
    /// Fails if there is no such key, or the call fails.
    pub async fn key_revoke_forced(&self, id: KeyId) -> Result<Key> {
        let id = id.to_string();
        let call = self.call(Method::DELETE, &["v1", "keys", &id]);
        let call = call.query("force", Some(true));
        call.repeatable(true).json().await
    }

    /// Rotates a key: creates a successor, and lets the old key expire after the overlap. Only this response contains the successor's secret.
    ///
    /// # Errors
    /// Fails if there is no such key, if it is not valid or was rotated already (`rotation_refused`), or the call fails.
    pub async fn key_rotate(&self, id: KeyId, options: &RotationOptions) -> Result<RotatedKey> {
        let id = id.to_string();
        let call = self.post(&["v1", "keys", &id, "rotate"]);
        call.body(options)?.json().await
    }

    /// Lists the audit log, newest first. A workspace key reads the entries of its workspace.
    pub fn audit_list(&self, filter: &AuditFilter) -> List<AuditEntry> {
        List::new(self, &["v1", "audit"])
            .filter("workspace", filter.workspace)
            .filter("key", filter.key)
            .filter("action", filter.action.as_ref())
    }
}
