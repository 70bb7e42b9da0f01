//! Definitions and their immutable versions: parameters and outcomes.

use crate::store_trait::store_trait;
use crate::{Page, Result};
use leasehold_core::{DefinitionId, Timestamp, VersionBody, VersionId, WorkspaceId};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

pub use crate::version_cache::{CachedVersion, VersionCache};
pub use leasehold_core::Version;

store_trait! {
    /// Definitions and their versions.
    pub trait DefinitionStore, observed by DefinitionObserver {
        /// Creates a definition without a version.
        async fn definition_create(&self, new: &NewDefinition) -> Result<DefinitionCreated>;

        /// Returns the definition; none if deleted.
        async fn definition_get(
            &self,
            workspace: WorkspaceId,
            id: DefinitionId,
        ) -> Result<Option<Definition>>;

        /// Returns the definition of this name in the workspace; none if deleted.
        async fn definition_find(
            &self,
            workspace: WorkspaceId,
            name: &str,
        ) -> Result<Option<Definition>>;

        /// Lists the definitions of a workspace by id.
        async fn definition_list(
            &self,
            workspace: WorkspaceId,
            page: Page<DefinitionId>,
        ) -> Result<Vec<Definition>>;

        /// Deletes the definition and keeps a tombstone: its waiting requests fail with definition_not_found when claimed. False if it does not exist.
        async fn definition_delete(&self, workspace: WorkspaceId, id: DefinitionId) -> Result<bool>;

        /// Publishes the next version and makes it current; none if the definition does not exist.
        async fn version_publish(&self, new: &NewVersion) -> Result<Option<Version>>;

        /// Returns the version, also of a deleted definition. Stores cache recently read versions in memory, so that a repeated call runs no
        /// statement.
        async fn version_get(
            &self,
            workspace: WorkspaceId,
            id: VersionId,
        ) -> Result<Option<Arc<Version>>>;

        /// Lists the versions of a definition by number; `page.after` is a number.
        async fn version_list(
            &self,
            workspace: WorkspaceId,
            definition: DefinitionId,
            page: Page<u32>,
        ) -> Result<Vec<Version>>;
    }
}

/// A workflow that a workspace owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Its id.
    pub id: DefinitionId,
    /// The workspace it belongs to.
    pub workspace: WorkspaceId,
    /// Its name, unique in the workspace among definitions that are not deleted.
    pub name: String,
    /// The version that new requests are pinned to; none before the first is published.
    pub current_version: Option<VersionId>,
    /// When it was created.
    pub created_at: Timestamp,
}

/// A definition to create.
#[derive(Clone, Debug)]
pub struct NewDefinition {
    /// Its id.
    pub id: DefinitionId,
    /// The workspace that will own it.
    pub workspace: WorkspaceId,
    /// Its name.
    pub name: String,
}

/// Outcome of creating a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefinitionCreated {
    /// The definition was created.
    Created(Definition),
    /// Another definition of the workspace has that name.
    NameTaken,
    /// No such workspace exists.
    WorkspaceNotFound,
}

/// A version to publish; it becomes the definition's current one.
#[derive(Clone, Debug)]
pub struct NewVersion {
    /// Its id.
    pub id: VersionId,
    /// The workspace that owns the definition.
    pub workspace: WorkspaceId,
    /// The definition.
    pub definition: DefinitionId,
    /// What it runs.
    pub body: VersionBody,
    /// The JSON Schema that params must match.
    pub params_schema: Option<Value>,
    /// The timeout of an execution.
    pub execution_timeout: Option<Duration>,
}
