//! Redriving what failed: what was asked is checked, then one store operation.

use crate::checks::{self, Refused};
use leasehold_core::RequestId;
use leasehold_core::limits::SWEEP_MAX_BATCH;
use leasehold_store::Store;
use leasehold_store::request::RedriveMany;
use thiserror::Error;

/// Failed requests redriven by one call unless more or fewer are asked for.
pub const USUAL_LIMIT: u32 = 1_000;

/// Why nothing was redriven.
#[derive(Debug, Error)]
pub enum RedriveError {
    /// A value is not acceptable.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] leasehold_store::Error),
}

/// Checks and redrives failed requests that were never redriven, oldest first; pairs of failed and new.
pub async fn redrive_many(
    store: &dyn Store,
    redrive: &RedriveMany,
) -> Result<Vec<(RequestId, RequestId)>, RedriveError> {
    let most = u64::from(SWEEP_MAX_BATCH);
    checks::number("limit", redrive.limit.into(), 1, most)?;
    Ok(store.request_redrive_many(redrive).await?)
}
