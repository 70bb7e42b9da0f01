//! Redriving what failed: what was asked is checked, also whether the backlog has room, then one store operation.

use crate::backlog::{Backlog, BacklogError};
use crate::checks::{self, Refused};
use leasehold_core::RequestId;
use leasehold_core::limits::SWEEP_MAX_BATCH;
use leasehold_store::Store;
use leasehold_store::request::{Redrive, RedriveMany, Redriven};
use thiserror::Error;

/// Failed requests redriven by one call unless more or fewer are asked for.
pub const USUAL_LIMIT: u32 = 1_000;

/// Why nothing was redriven.
#[derive(Debug, Error)]
pub enum RedriveError {
    /// A value is not acceptable.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// There is no room in the backlog.
    #[error(transparent)]
    Backlog(#[from] BacklogError),
    /// There is no such request, or no such workspace.
    #[error("there is no such request")]
    NotFound,
    /// The request has not failed.
    #[error("only a FAILED request can be redriven")]
    NotFailed,
    /// An earlier redrive has not ended.
    #[error("request {0} repeats it and has not ended")]
    AlreadyRedriven(RequestId),
    /// What the request would run is deleted.
    #[error("its workspace or its definition is deleted: it could only fail again")]
    DefinitionNotFound,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] leasehold_store::Error),
}

/// Redrives a failed request, if the backlog has room. Returns the new request.
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

/// Redrives failed requests that were never redriven, oldest first, if the backlog has room. Returns pairs of failed and new.
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
