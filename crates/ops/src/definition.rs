//! Making, finding and deleting definitions: names are checked before the store is asked.

use crate::checks::{self, Refused};
use leasehold_core::limits::NAME_MAX_CHARS;
use leasehold_core::{DefinitionId, WorkspaceId};
use leasehold_store::Store;
use leasehold_store::definition::{Definition, DefinitionCreated, NewDefinition};
use thiserror::Error;

/// Why a definition was not made or deleted.
#[derive(Debug, Error)]
pub enum DefinitionError {
    /// A value is not acceptable.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Another definition of the workspace has that name.
    #[error("another definition of the workspace is called `{0}`")]
    NameTaken(String),
    /// There is no such workspace.
    #[error("there is no such workspace")]
    WorkspaceNotFound,
    /// There is no such definition in the workspace.
    #[error("there is no such definition")]
    NotFound,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] leasehold_store::Error),
}

/// Checks and makes a definition without a version.
pub async fn create(store: &dyn Store, new: &NewDefinition) -> Result<Definition, DefinitionError> {
    checks::text("name", &new.name, NAME_MAX_CHARS)?;
    match store.definition_create(new).await? {
        DefinitionCreated::Created(definition) => Ok(definition),
        DefinitionCreated::NameTaken => Err(DefinitionError::NameTaken(new.name.clone())),
        DefinitionCreated::WorkspaceNotFound => Err(DefinitionError::WorkspaceNotFound),
    }
}

/// The definition of a name in a workspace, if there is one. A name that no definition can have is nobody's.
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

/// Deletes a definition: what waits of it fails when its turn comes, what runs runs on.
pub async fn delete(
    store: &dyn Store,
    workspace: WorkspaceId,
    id: DefinitionId,
) -> Result<(), DefinitionError> {
    if store.definition_delete(workspace, id).await? {
        Ok(())
    } else {
        Err(DefinitionError::NotFound)
    }
}
