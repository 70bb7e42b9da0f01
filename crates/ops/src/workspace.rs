//! Making, finding, changing and deleting workspaces: names and limits are checked before the store is asked.

use crate::checks::{self, Refused};
use leasehold_core::WorkspaceId;
use leasehold_core::limits::{CONCURRENCY_MAX, NAME_MAX_CHARS};
use leasehold_store::Store;
use leasehold_store::workspace::{
    NewWorkspace, Workspace, WorkspaceChange, WorkspaceCreated, WorkspaceUse,
};
use thiserror::Error;

/// Why a workspace was not made, changed or deleted.
#[derive(Debug, Error)]
pub enum WorkspaceError {
    /// A value is not acceptable.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Another workspace has that name.
    #[error("another workspace is called `{0}`")]
    NameTaken(String),
    /// There is no such workspace.
    #[error("there is no such workspace")]
    NotFound,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] leasehold_store::Error),
}

/// Checks and makes a workspace.
pub async fn create(store: &dyn Store, new: &NewWorkspace) -> Result<Workspace, WorkspaceError> {
    checks::text("name", &new.name, NAME_MAX_CHARS)?;
    check_limit(new.limit_override)?;
    match store.workspace_create(new).await? {
        WorkspaceCreated::Created(workspace) => Ok(workspace),
        WorkspaceCreated::NameTaken => Err(WorkspaceError::NameTaken(new.name.clone())),
    }
}

/// The workspace of a name, if there is one. A name that no workspace can have is nobody's.
pub async fn find(store: &dyn Store, name: &str) -> leasehold_store::Result<Option<Workspace>> {
    if checks::text("name", name, NAME_MAX_CHARS).is_err() {
        return Ok(None);
    }
    store.workspace_find(name).await
}

/// A workspace that is not deleted, with its slots and its requests.
pub async fn get(
    store: &dyn Store,
    id: WorkspaceId,
) -> leasehold_store::Result<Option<WorkspaceUse>> {
    let found = store.workspace_get(id).await?;
    let Some(workspace) = found.filter(|workspace| workspace.deleted_at.is_none()) else {
        return Ok(None);
    };
    let Some(slots) = store.workspace_slots(id).await? else {
        return Ok(None);
    };
    let requests = store.request_counts(id).await?;
    Ok(Some(WorkspaceUse {
        workspace,
        slots,
        requests,
    }))
}

/// Checks and makes a change of a workspace.
pub async fn update(
    store: &dyn Store,
    id: WorkspaceId,
    change: &WorkspaceChange,
) -> Result<Workspace, WorkspaceError> {
    check_limit(change.limit_override.flatten())?;
    let changed = store.workspace_update(id, change).await?;
    changed.ok_or(WorkspaceError::NotFound)
}

/// Deletes a workspace: nothing can be enqueued any more, and what waits fails when its turn comes.
pub async fn delete(store: &dyn Store, id: WorkspaceId) -> Result<(), WorkspaceError> {
    if store.workspace_delete(id).await? {
        Ok(())
    } else {
        Err(WorkspaceError::NotFound)
    }
}

fn check_limit(limit: Option<u32>) -> Result<(), Refused> {
    let limit = u64::from(limit.unwrap_or_default());
    checks::number(
        "max_concurrent_executions",
        limit,
        0,
        CONCURRENCY_MAX.into(),
    )
}
