//! Redriving failed requests: validate the call, check the backlog, then run one store operation.

use crate::backlog::{Backlog, BacklogError};
use crate::checks::{self, InvalidField};
use leasehold_core::RequestId;
use leasehold_core::limits::SWEEP_MAX_BATCH;
use leasehold_store::Store;
use leasehold_store::request::{Redrive, RedriveMany, Redriven};
use thiserror::Error;

/// Failed requests redriven by one call that sets no limit.
pub const DEFAULT_LIMIT: u32 = 1_000;

/// Why nothing was redriven.
#[derive(Debug, Error)]
pub enum RedriveError {
    /// A field is invalid.
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    /// The backlog is full.
    #[error(transparent)]
    Backlog(#[from] BacklogError),
    /// No such request or workspace exists.
    #[error("request or workspace not found")]
    NotFound,
    /// The request has not failed.
    #[error("cannot redrive: the request is not FAILED")]
    NotFailed,
    /// An earlier redrive has not ended.
    #[error("cannot redrive: an earlier redrive, request {0}, has not ended")]
    AlreadyRedriven(RequestId),
    /// The workspace or definition is deleted.
    #[error("cannot redrive: the workspace or the definition of the request is deleted")]
    DefinitionNotFound,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] leasehold_store::Error),
}

/// Redrives a failed request if the backlog is not full. Returns the new request.
pub async fn redrive(
    store: &dyn Store,
    backlog: &Backlog,
    redrive: &Redrive,
) -> Result<RequestId, RedriveError> {
    backlog.admit(store, redrive.workspace, 1).await?;
    match store.request_redrive(redrive).await? {
        Redriven::Enqueued(request) => Ok(request),
        Redriven::AlreadyLive(request) => Err(RedriveError::AlreadyRedriven(request)),
        Redriven::NotFailed => Err(RedriveError::NotFailed),
        Redriven::DefinitionNotFound => Err(RedriveError::DefinitionNotFound),
        Redriven::NotFound => Err(RedriveError::NotFound),
    }
}

/// Redrives failed requests that were never redriven, oldest first, if the backlog is not full. Returns pairs of failed and new request.
pub async fn redrive_many(
    store: &dyn Store,
    backlog: &Backlog,
    redrive: &RedriveMany,
) -> Result<Vec<(RequestId, RequestId)>, RedriveError> {
    backlog.admit(store, redrive.workspace, 1).await?;
    let most = u64::from(SWEEP_MAX_BATCH);
    checks::number("limit", redrive.limit.into(), 1, most)?;
    let redriven = store.request_redrive_many(redrive).await?;
    if redriven.is_empty() && store.workspace_get(redrive.workspace).await?.is_none() {
        return Err(RedriveError::NotFound);
    }
    Ok(redriven)
}
