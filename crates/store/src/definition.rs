//! Definitions and their immutable versions: parameters and outcomes.

use crate::record::{RecordRow, record};
use crate::store_trait::store_trait;
use crate::{Actor, Page, Result};
use leasehold_core::limits::CATALOG_ROW_BYTES;
use leasehold_core::{DefinitionId, JsonText, Timestamp, VersionBody, VersionId, WorkspaceId};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

pub use crate::version_cache::{CachedVersion, VersionCache};
pub use leasehold_core::Version;
pub use leasehold_core::queue_access::{Publisher, QueueGrants, QueueRefusal};

store_trait! {
    /// Definitions and their versions.
    pub trait DefinitionStore, observed by DefinitionObserver {
        /// Creates a definition without a version. Counts [`CATALOG_ROW_BYTES`] towards the bytes of the workspace's definitions and versions, for good: a
        /// deleted definition and its versions stay in the store, for the requests that ran them. They may not exceed the `max_open_bytes` of
        /// the workspace, however many calls are concurrent.
        async fn definition_create(&self, new: &NewDefinition, by: &Actor) -> Result<DefinitionCreated>;

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
        async fn definition_delete(
            &self,
            workspace: WorkspaceId,
            id: DefinitionId,
            by: &Actor,
        ) -> Result<bool>;

        /// Publishes the next version and makes it current, and creates the unknown queues that its graph names: for the workspace if it publishes itself, for
        /// the installation if an administrator does. An administrator's publish also shares the installation's queues that it names with the workspace.
        /// A graph that names a queue which the workspace may not use is refused, and nothing changes. Of concurrent publishes that name the same unknown
        /// queue exactly one creates it. Counts [`NewVersion::bytes`] like [`Self::definition_create`].
        async fn version_publish(&self, new: &NewVersion, by: &Actor) -> Result<VersionPublished>;

        /// Returns the version, also of a deleted definition. Stores cache recently read versions in memory, so that a repeated call runs no
        /// statement.
        async fn version_get(
            &self,
            workspace: WorkspaceId,
            id: VersionId,
        ) -> Result<Option<Arc<Version>>>;

        /// Lists the versions of a definition by number; `page.after` is a number. Their bodies are not parsed.
        async fn version_list(
            &self,
            workspace: WorkspaceId,
            definition: DefinitionId,
            page: Page<u32>,
        ) -> Result<Vec<VersionRecord>>;
    }
}

record! {
    /// A version as it is stored, with its body and its schema as text: parsed they take up to a hundred times the memory.
    #[derive(Clone, Debug, PartialEq)]
    pub struct VersionRecord {
        /// Its id.
        pub id: VersionId = "id",
        /// The workspace that owns the definition.
        pub workspace: WorkspaceId = "workspace_id",
        /// The definition.
        pub definition: DefinitionId = "definition_id",
        /// 1, 2, 3 … within the definition.
        pub number: u32 = "number",
        /// What it runs.
        pub body: JsonText = "body",
        /// The JSON Schema that params must match.
        pub params_schema: Option<JsonText> = "params_schema",
        /// The timeout of an execution.
        pub execution_timeout: Option<Duration> => execution_timeout,
        /// When it was published.
        pub created_at: Timestamp = "created_at",
    }
}

fn execution_timeout<R: RecordRow>(row: &R) -> std::result::Result<Option<Duration>, R::Error> {
    let stored = row.integer("execution_timeout_ms")?;
    Ok(stored.map(|ms| Duration::from_millis(ms.unsigned_abs())))
}

impl VersionRecord {
    /// Parses the body and the schema.
    ///
    /// # Errors
    /// If the stored body is not that of a version.
    pub fn parse(&self) -> std::result::Result<Version, serde_json::Error> {
        let schema = self.params_schema.as_ref();
        Ok(Version {
            id: self.id,
            workspace: self.workspace,
            definition: self.definition,
            number: self.number,
            body: self.body.read()?,
            params_schema: schema.map(JsonText::read).transpose()?,
            execution_timeout: self.execution_timeout,
            created_at: self.created_at,
        })
    }
}

impl TryFrom<&Version> for VersionRecord {
    type Error = serde_json::Error;

    fn try_from(version: &Version) -> std::result::Result<Self, serde_json::Error> {
        Ok(Self {
            id: version.id,
            workspace: version.workspace,
            definition: version.definition,
            number: version.number,
            body: JsonText::of(&version.body)?,
            params_schema: version.params_schema.as_ref().map(JsonText::from),
            execution_timeout: version.execution_timeout,
            created_at: version.created_at,
        })
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
    /// The definitions and versions of the workspace would have more bytes than its `max_open_bytes`; nothing was created.
    QuotaExceeded,
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
    /// Who publishes it.
    pub publisher: Publisher,
}

impl NewVersion {
    /// Returns the bytes that it counts: its body and its schema as JSON text, and [`CATALOG_ROW_BYTES`].
    pub fn bytes(&self) -> u64 {
        let body = JsonText::of(&self.body).map_or(0, |body| body.as_str().len());
        let schema = self.params_schema.as_ref();
        let schema = schema.map_or(0, |schema| JsonText::from(schema).as_str().len());
        (body + schema) as u64 + CATALOG_ROW_BYTES
    }
}

/// Outcome of publishing a version.
#[derive(Clone, Debug, PartialEq)]
pub enum VersionPublished {
    /// It is the definition's current version.
    Published(Box<Version>),
    /// No such definition exists in the workspace, or either is deleted.
    DefinitionNotFound,
    /// Its graph names a queue that the workspace may not use or create.
    QueueRefused(QueueRefusal),
    /// The definitions and versions of the workspace would have more bytes than its `max_open_bytes`; nothing was changed.
    QuotaExceeded,
}

impl VersionPublished {
    /// Returns the version, if it was published.
    pub fn version(self) -> Option<Version> {
        match self {
            Self::Published(version) => Some(*version),
            Self::DefinitionNotFound | Self::QueueRefused(_) | Self::QuotaExceeded => None,
        }
    }

    /// The outcome for a version that was written; none stands for a missing definition.
    pub fn of(version: Option<Version>) -> Self {
        version.map_or(Self::DefinitionNotFound, |version| {
            Self::Published(Box::new(version))
        })
    }
}
