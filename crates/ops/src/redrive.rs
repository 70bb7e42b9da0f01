//! Redriving failed requests: validate the call, check the quotas of the workspace, then run one store operation.

use crate::checks::{self, InvalidField};
use crate::quota::{QuotaError, Quotas};
use leasehold_core::limits::{REDRIVE_MAX_BYTES, SWEEP_MAX_BATCH};
use leasehold_core::quota::request_bytes;
use leasehold_core::{RequestId, Usage};
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
    /// A quota of the workspace is exceeded.
    #[error(transparent)]
    Quota(#[from] QuotaError),
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

/// Redrives a failed request if the quotas of its workspace allow one more. Returns the new request.
pub async fn redrive(
    store: &dyn Store,
    quotas: &Quotas,
    redrive: &Redrive,
) -> Result<RequestId, RedriveError> {
    let failed = store.request_get(redrive.workspace, redrive.failed).await?;
    let failed = failed.ok_or(RedriveError::NotFound)?;
    // Admitted with the bytes of its params, so that many redrives at once exceed the quota by no more than as many enqueues.
    let added = Usage {
        requests: 1,
        bytes: request_bytes(failed.params.as_str().len()),
    };
    let _admission = quotas.admit(store, redrive.workspace, added).await?;
    match store.request_redrive(redrive).await? {
        Redriven::Enqueued(request) => Ok(request),
        Redriven::AlreadyLive(request) => Err(RedriveError::AlreadyRedriven(request)),
        Redriven::NotFailed => Err(RedriveError::NotFailed),
        Redriven::DefinitionNotFound => Err(RedriveError::DefinitionNotFound),
        Redriven::NotFound => Err(RedriveError::NotFound),
    }
}

/// Redrives failed requests that were never redriven, oldest first: as many as the quotas of the workspace allow, and fails if they allow none. Returns
/// pairs of failed and new request. `redrive.max_bytes` and [`REDRIVE_MAX_BYTES`] are upper bounds beside the quotas, so there may be more until a call
/// returns none.
pub async fn redrive_many(
    store: &dyn Store,
    quotas: &Quotas,
    redrive: &RedriveMany,
) -> Result<Vec<(RequestId, RequestId)>, RedriveError> {
    let most = u64::from(SWEEP_MAX_BATCH);
    checks::number("limit", redrive.limit.into(), 1, most)?;
    let workspace = redrive.workspace;
    let wanted = Usage {
        requests: redrive.limit.into(),
        bytes: redrive.max_bytes.min(REDRIVE_MAX_BYTES),
    };
    let admission = quotas.admit_part(store, workspace, wanted).await?;
    let fitting = RedriveMany {
        limit: u32::try_from(admission.usage().requests).unwrap_or(redrive.limit),
        max_bytes: admission.usage().bytes,
        ..redrive.clone()
    };
    let redriven = store.request_redrive_many(&fitting).await;
    drop(admission);
    // How many requests and bytes were added is known to the store.
    quotas.expire(workspace);
    let redriven = redriven?;
    if redriven.is_empty() && store.workspace_get(workspace).await?.is_none() {
        return Err(RedriveError::NotFound);
    }
    Ok(redriven)
}
