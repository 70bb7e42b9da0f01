//! Workspaces and keys.

use crate::client::Client;
use crate::error::Result;
use crate::list::List;
use leasehold_api::key::{Key, MadeKey, NewKey};
use leasehold_api::workspace::{NewWorkspace, Workspace, WorkspaceChange, WorkspaceState};
use leasehold_core::{KeyId, WorkspaceId};
use reqwest::Method;

/// # Workspaces and keys
impl Client {
    /// All workspaces.
    pub fn workspace_list(&self) -> List<Workspace> {
        List::new(self, &["v1", "workspaces"])
    }

    /// The workspace of this name, if there is one.
    ///
    /// # Errors
    /// If the call does not succeed.
    pub async fn workspace_find(&self, name: &str) -> Result<Option<Workspace>> {
        let named = self.workspace_list().only("name", Some(name));
        Ok(named.page(None).await?.items.pop())
    }

    /// Makes a workspace.
    ///
    /// # Errors
    /// If the name is taken or something in it is not acceptable, or the call does not succeed.
    pub async fn workspace_create(&self, new: &NewWorkspace) -> Result<Workspace> {
        self.post(&["v1", "workspaces"]).body(new)?.json().await
    }

    /// A workspace with what it uses now.
    ///
    /// # Errors
    /// If there is no such workspace, or the call does not succeed.
    pub async fn workspace_get(&self, id: WorkspaceId) -> Result<WorkspaceState> {
        let id = id.to_string();
        self.get(&["v1", "workspaces", &id]).json().await
    }

    /// Changes a workspace.
    ///
    /// # Errors
    /// If there is no such workspace, or the call does not succeed.
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
    /// If there is no such workspace, or the call does not succeed.
    pub async fn workspace_delete(&self, id: WorkspaceId) -> Result<()> {
        let id = id.to_string();
        self.call(Method::DELETE, &["v1", "workspaces", &id])
            .done()
            .await
    }

    /// The key of this client.
    ///
    /// # Errors
    /// If the call does not succeed.
    pub async fn key_me(&self) -> Result<Key> {
        self.get(&["v1", "me"]).json().await
    }

    /// All keys, revoked ones too.
    pub fn key_list(&self) -> List<Key> {
        List::new(self, &["v1", "keys"])
    }

    /// Makes a key. Its secret is in the answer and nowhere else.
    ///
    /// # Errors
    /// If something in it is not acceptable, or the call does not succeed.
    pub async fn key_create(&self, new: &NewKey) -> Result<MadeKey> {
        self.post(&["v1", "keys"]).body(new)?.json().await
    }

    /// A key.
    ///
    /// # Errors
    /// If there is no such key, or the call does not succeed.
    pub async fn key_get(&self, id: KeyId) -> Result<Key> {
        let id = id.to_string();
        self.get(&["v1", "keys", &id]).json().await
    }

    /// Revokes a key for good.
    ///
    /// # Errors
    /// If there is no such key, or the call does not succeed.
    pub async fn key_revoke(&self, id: KeyId) -> Result<Key> {
        let id = id.to_string();
        let call = self.call(Method::DELETE, &["v1", "keys", &id]);
        call.repeatable(true).json().await
    }
}
