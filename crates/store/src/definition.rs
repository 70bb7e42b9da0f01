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
        /// Makes a definition without a version.
        async fn definition_create(&self, new: &NewDefinition) -> Result<DefinitionCreated>;

        /// The definition, none if deleted.
        async fn definition_get(
            &self,
            workspace: WorkspaceId,
            id: DefinitionId,
        ) -> Result<Option<Definition>>;

        /// The definition of this name in the workspace, none if deleted.
        async fn definition_find(
            &self,
            workspace: WorkspaceId,
            name: &str,
        ) -> Result<Option<Definition>>;

        /// Definitions of a workspace, by id.
        async fn definition_list(
            &self,
            workspace: WorkspaceId,
            page: Page<DefinitionId>,
        ) -> Result<Vec<Definition>>;

        /// Puts a tombstone: what waits of it fails with definition_not_found when claimed. False if not there.
        async fn definition_delete(&self, workspace: WorkspaceId, id: DefinitionId) -> Result<bool>;

        /// Publishes the next version and makes it current; none if there is no such definition.
        async fn version_publish(&self, new: &NewVersion) -> Result<Option<Version>>;

        /// The version, also of a deleted definition. A store keeps the versions that it read lately in memory, so that asking again costs no
        /// statement.
        async fn version_get(
            &self,
            workspace: WorkspaceId,
            id: VersionId,
        ) -> Result<Option<Arc<Version>>>;

        /// Versions of a definition by number, `page.after` being a number.
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
    /// Whose it is.
    pub workspace: WorkspaceId,
    /// Its name, unique in the workspace among those not deleted.
    pub name: String,
    /// The version new requests are pinned to, none before the first was published.
    pub current_version: Option<VersionId>,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A definition to make.
#[derive(Clone, Debug)]
pub struct NewDefinition {
    /// Its id.
    pub id: DefinitionId,
    /// Whose it shall be.
    pub workspace: WorkspaceId,
    /// Its name.
    pub name: String,
}

/// What became of making a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefinitionCreated {
    /// It was made.
    Created(Definition),
    /// Another definition of the workspace has that name.
    NameTaken,
    /// There is no such workspace.
    WorkspaceNotFound,
}

/// A version to publish; it becomes the definition's current one.
#[derive(Clone, Debug)]
pub struct NewVersion {
    /// Its id.
    pub id: VersionId,
    /// Whose definition.
    pub workspace: WorkspaceId,
    /// The definition.
    pub definition: DefinitionId,
    /// What it runs.
    pub body: VersionBody,
    /// The JSON Schema that params must match.
    pub params_schema: Option<Value>,
    /// How long an execution may take.
    pub execution_timeout: Option<Duration>,
}
