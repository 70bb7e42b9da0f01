//! Definitions and their versions.

use crate::client::Client;
use crate::error::Result;
use crate::list::List;
use leasehold_api::definition::{Definition, NewDefinition, NewVersion, Version};
use leasehold_core::{DefinitionId, VersionId, WorkspaceId};
use reqwest::Method;

/// # Definitions and versions
impl Client {
    /// Definitions of a workspace.
    pub fn definition_list(&self, workspace: WorkspaceId) -> List<Definition> {
        let workspace = workspace.to_string();
        List::new(self, &["v1", "workspaces", &workspace, "definitions"])
    }

    /// The definition of this name in a workspace, if there is one.
    ///
    /// # Errors
    /// If the call does not succeed.
    pub async fn definition_find(
        &self,
        workspace: WorkspaceId,
        name: &str,
    ) -> Result<Option<Definition>> {
        let named = self.definition_list(workspace).only("name", Some(name));
        Ok(named.page(None).await?.items.pop())
    }

    /// Makes a definition without a version.
    ///
    /// # Errors
    /// If the name is taken or not acceptable, or the call does not succeed.
    pub async fn definition_create(
        &self,
        workspace: WorkspaceId,
        new: &NewDefinition,
    ) -> Result<Definition> {
        let workspace = workspace.to_string();
        let call = self.post(&["v1", "workspaces", &workspace, "definitions"]);
        call.body(new)?.json().await
    }

    /// A definition.
    ///
    /// # Errors
    /// If there is no such definition, or the call does not succeed.
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
    /// If there is no such definition, or the call does not succeed.
    pub async fn definition_delete(&self, workspace: WorkspaceId, id: DefinitionId) -> Result<()> {
        let (workspace, id) = (workspace.to_string(), id.to_string());
        let path = ["v1", "workspaces", &workspace, "definitions", &id];
        self.call(Method::DELETE, &path).done().await
    }

    /// Versions of a definition, by number.
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
    /// If something in it is not acceptable, or the call does not succeed.
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

    /// A version.
    ///
    /// # Errors
    /// If there is no such version, or the call does not succeed.
    pub async fn version_get(&self, workspace: WorkspaceId, id: VersionId) -> Result<Version> {
        let (workspace, id) = (workspace.to_string(), id.to_string());
        let call = self.get(&["v1", "workspaces", &workspace, "versions", &id]);
        call.json().await
    }
}
