//! Operations on definitions: names are validated before the store is called.

use crate::checks::{self, InvalidField};
use leasehold_core::limits::NAME_MAX_CHARS;
use leasehold_core::{DefinitionId, WorkspaceId};
use leasehold_store::definition::{Definition, DefinitionCreated, NewDefinition};
use leasehold_store::{Actor, Store};
use thiserror::Error;

/// The text of the quota of definitions and versions.
pub(crate) const CATALOG_QUOTA: &str = "quota exceeded: the definitions and versions of the workspace, deleted ones included, would have more bytes than its max_open_bytes; raise the limit, or use another workspace";

/// Why a definition was not created or deleted.
#[derive(Debug, Error)]
pub enum DefinitionError {
    /// A field is invalid.
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    /// Another definition of the workspace has that name.
    #[error("name `{0}` is already used by another definition of the workspace")]
    NameTaken(String),
    /// No such workspace exists.
    #[error("workspace not found")]
    WorkspaceNotFound,
    /// No such definition exists in the workspace.
    #[error("definition not found")]
    NotFound,
    /// The definitions and versions of the workspace would have too many bytes.
    #[error("{CATALOG_QUOTA}")]
    QuotaExceeded,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] leasehold_store::Error),
}

/// Validates and creates a definition without a version.
pub async fn create(
    store: &dyn Store,
    new: &NewDefinition,
    by: &Actor,
) -> Result<Definition, DefinitionError> {
    checks::text("name", &new.name, NAME_MAX_CHARS)?;
    match store.definition_create(new, by).await? {
        DefinitionCreated::Created(definition) => Ok(definition),
        DefinitionCreated::NameTaken => Err(DefinitionError::NameTaken(new.name.clone())),
        DefinitionCreated::WorkspaceNotFound => Err(DefinitionError::WorkspaceNotFound),
        DefinitionCreated::QuotaExceeded => Err(DefinitionError::QuotaExceeded),
    }
}

/// Returns the definition of this name in a workspace, if it exists. An invalid name matches none.
pub async fn find(
    store: &dyn Store,
    workspace: WorkspaceId,
    name: &str,
) -> leasehold_store::Result<Option<Definition>> {
    if checks::text("name", name, NAME_MAX_CHARS).is_err() {
        return Ok(None);
    }
    store.definition_find(workspace, name).await
}

/// Deletes a definition: its waiting requests fail when their turn comes, running executions continue.
pub async fn delete(
    store: &dyn Store,
    workspace: WorkspaceId,
    id: DefinitionId,
    by: &Actor,
) -> Result<(), DefinitionError> {
    if store.definition_delete(workspace, id, by).await? {
        Ok(())
    } else {
        Err(DefinitionError::NotFound)
    }
}
