//! Calls about definitions and versions.

use crate::client::Client;
use crate::error::Result;
use crate::list::List;
use leasehold_api::definition::{Definition, NewDefinition, NewVersion, Version};
use leasehold_core::{DefinitionId, VersionId, WorkspaceId};
use reqwest::Method;

/// # Definitions and versions
impl Client {
    /// Lists the definitions of a workspace.
    pub fn definition_list(&self, workspace: WorkspaceId) -> List<Definition> {
        let workspace = workspace.to_string();
        List::new(self, &["v1", "workspaces", &workspace, "definitions"])
    }

    /// Finds a definition by name.
    ///
    /// # Errors
    /// Fails if the call fails.
    pub async fn definition_find(
        &self,
        workspace: WorkspaceId,
        name: &str,
    ) -> Result<Option<Definition>> {
        let named = self.definition_list(workspace).filter("name", Some(name));
        Ok(named.page(None).await?.items.pop())
    }

    /// Creates a definition without a version.
    ///
    /// # Errors
    /// Fails if the name is taken or invalid, or the call fails.
    pub async fn definition_create(
        &self,
        workspace: WorkspaceId,
        new: &NewDefinition,
    ) -> Result<Definition> {
        let workspace = workspace.to_string();
        let call = self.post(&["v1", "workspaces", &workspace, "definitions"]);
        call.body(new)?.json().await
    }

    /// Returns a definition.
    ///
    /// # Errors
    /// Fails if there is no such definition, or the call fails.
    pub async fn definition_get(
        &self,
        workspace: WorkspaceId,
        id: DefinitionId,
    ) -> Result<Definition> {
        let (workspace, id) = (workspace.to_string(), id.to_string());
        let call = self.get(&["v1", "workspaces", &workspace, "definitions", &id]);
        call.json().await
    }

    /// Deletes a definition.
    ///
    /// # Errors
    /// Fails if there is no such definition, or the call fails.
    pub async fn definition_delete(&self, workspace: WorkspaceId, id: DefinitionId) -> Result<()> {
        let (workspace, id) = (workspace.to_string(), id.to_string());
        let path = ["v1", "workspaces", &workspace, "definitions", &id];
        self.call(Method::DELETE, &path).done().await
    }

    /// Lists the versions of a definition, by number.
    pub fn version_list(&self, workspace: WorkspaceId, definition: DefinitionId) -> List<Version> {
        let (workspace, id) = (workspace.to_string(), definition.to_string());
        List::new(
            self,
            &[
                "v1",
                "workspaces",
                &workspace,
                "definitions",
                &id,
                "versions",
            ],
        )
    }

    /// Publishes the next version of a definition and makes it current.
    ///
    /// # Errors
    /// Fails if the version is invalid, or the call fails.
    pub async fn version_publish(
        &self,
        workspace: WorkspaceId,
        definition: DefinitionId,
        new: &NewVersion,
    ) -> Result<Version> {
        let (workspace, id) = (workspace.to_string(), definition.to_string());
        let path = [
            "v1",
            "workspaces",
            &workspace,
            "definitions",
            &id,
            "versions",
        ];
        self.post(&path).body(new)?.json().await
    }

    /// Returns a version.
    ///
    /// # Errors
    /// Fails if there is no such version, or the call fails.
    pub async fn version_get(&self, workspace: WorkspaceId, id: VersionId) -> Result<Version> {
        let (workspace, id) = (workspace.to_string(), id.to_string());
        let call = self.get(&["v1", "workspaces", &workspace, "versions", &id]);
        call.json().await
    }
}
