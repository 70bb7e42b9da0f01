//! Calls about workspaces and keys.

use crate::client::Client;
use crate::error::Result;
use crate::list::List;
use leasehold_api::key::{CreatedKey, Key, NewKey};
use leasehold_api::workspace::{NewWorkspace, Workspace, WorkspaceChange, WorkspaceState};
use leasehold_core::{KeyId, WorkspaceId};
use reqwest::Method;

/// # Workspaces and keys
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

    /// Lists all keys, revoked ones included.
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

    /// Revokes a key permanently.
    ///
    /// # Errors
    /// Fails if there is no such key, or the call fails.
    pub async fn key_revoke(&self, id: KeyId) -> Result<Key> {
        let id = id.to_string();
        let call = self.call(Method::DELETE, &["v1", "keys", &id]);
        call.repeatable(true).json().await
    }
}
