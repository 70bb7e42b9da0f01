//! Operations on workspaces: names and limits are validated before the store is called.

use crate::checks::{self, InvalidField};
use leasehold_core::limits::{
    CONCURRENCY_MAX, MAX_OPEN_BYTES_MAX, MAX_PENDING_MAX, NAME_MAX_CHARS,
};
use leasehold_core::{WorkspaceId, WorkspaceQuota};
use leasehold_store::workspace::{
    NewWorkspace, Workspace, WorkspaceChange, WorkspaceCreated, WorkspaceUse,
};
use leasehold_store::{Actor, Store};
use thiserror::Error;

/// Why a workspace was not created, changed or deleted.
#[derive(Debug, Error)]
pub enum WorkspaceError {
    /// A field is invalid.
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    /// Another workspace has that name.
    #[error("name `{0}` is already used by another workspace")]
    NameTaken(String),
    /// No such workspace exists.
    #[error("workspace not found")]
    NotFound,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] leasehold_store::Error),
}

/// Validates and creates a workspace.
pub async fn create(
    store: &dyn Store,
    new: &NewWorkspace,
    by: &Actor,
) -> Result<Workspace, WorkspaceError> {
    checks::text("name", &new.name, NAME_MAX_CHARS)?;
    check_limit(new.limit_override)?;
    match store.workspace_create(new, by).await? {
        WorkspaceCreated::Created(workspace) => Ok(workspace),
        WorkspaceCreated::NameTaken => Err(WorkspaceError::NameTaken(new.name.clone())),
    }
}

/// Returns the workspace of this name, if it exists. An invalid name matches none.
pub async fn find(store: &dyn Store, name: &str) -> leasehold_store::Result<Option<Workspace>> {
    if checks::text("name", name, NAME_MAX_CHARS).is_err() {
        return Ok(None);
    }
    store.workspace_find(name).await
}

/// Returns a workspace with its slots, its requests and its quotas; none if it is deleted.
pub async fn get(
    store: &dyn Store,
    id: WorkspaceId,
) -> leasehold_store::Result<Option<(WorkspaceUse, WorkspaceQuota)>> {
    let found = store.workspace_get(id).await?;
    let Some(workspace) = found.filter(|workspace| workspace.deleted_at.is_none()) else {
        return Ok(None);
    };
    let Some(slots) = store.workspace_slots(id).await? else {
        return Ok(None);
    };
    let requests = store.request_counts(id).await?;
    let Some(quota) = store.workspace_quota(id).await? else {
        return Ok(None);
    };
    let usage = WorkspaceUse {
        workspace,
        slots,
        requests,
    };
    Ok(Some((usage, quota)))
}

/// Validates and applies a change of a workspace.
pub async fn update(
    store: &dyn Store,
    id: WorkspaceId,
    change: &WorkspaceChange,
    by: &Actor,
) -> Result<Workspace, WorkspaceError> {
    check_limit(change.limit_override.flatten())?;
    let pending = change.max_pending_override.flatten().unwrap_or_default();
    checks::number("max_pending", pending, 0, MAX_PENDING_MAX)?;
    let bytes = change.max_open_bytes_override.flatten();
    checks::number(
        "max_open_bytes",
        bytes.unwrap_or_default(),
        0,
        MAX_OPEN_BYTES_MAX,
    )?;
    let changed = store.workspace_update(id, change, by).await?;
    changed.ok_or(WorkspaceError::NotFound)
}

/// Deletes a workspace: nothing can be enqueued, and waiting requests fail when their turn comes.
pub async fn delete(store: &dyn Store, id: WorkspaceId, by: &Actor) -> Result<(), WorkspaceError> {
    if store.workspace_delete(id, by).await? {
        Ok(())
    } else {
        Err(WorkspaceError::NotFound)
    }
}

fn check_limit(limit: Option<u32>) -> Result<(), InvalidField> {
    let limit = u64::from(limit.unwrap_or_default());
    checks::number(
        "max_concurrent_executions",
        limit,
        0,
        CONCURRENCY_MAX.into(),
    )
}
