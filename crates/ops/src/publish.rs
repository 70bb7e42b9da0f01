//! Publishing a version: its body and its params schema are validated before anything is stored.

use crate::schema;
use leasehold_core::json::{self, JsonProblem};
use leasehold_core::limits::{EXECUTION_TIMEOUT_MAX_DAYS, SCHEMA_MAX_BYTES};
use leasehold_core::version::VersionProblem;
use leasehold_store::Store;
use leasehold_store::definition::{NewVersion, Version};
use std::time::Duration;
use thiserror::Error;

/// Why a version was not published.
#[derive(Debug, Error)]
pub enum PublishError {
    /// No such definition exists in the workspace.
    #[error("definition not found")]
    DefinitionNotFound,
    /// Its graph or binding is invalid.
    #[error(transparent)]
    Body(#[from] VersionProblem),
    /// Its params schema is not valid JSON for storage.
    #[error("params_schema: {0}")]
    SchemaDocument(JsonProblem),
    /// Its params schema is not a JSON Schema.
    #[error("params_schema is not a valid JSON Schema: {0}")]
    Schema(String),
    /// Its timeout is out of range.
    #[error("execution_timeout must be between 1 ms and {EXECUTION_TIMEOUT_MAX_DAYS} days")]
    Timeout,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] leasehold_store::Error),
}

/// Publishes a version and makes it the definition's current one.
pub async fn publish(store: &dyn Store, new: &NewVersion) -> Result<Version, PublishError> {
    new.body.validate()?;
    if let Some(document) = &new.params_schema {
        json::check(document, SCHEMA_MAX_BYTES).map_err(PublishError::SchemaDocument)?;
        schema::compile(document).map_err(PublishError::Schema)?;
    }
    let longest = Duration::from_secs(u64::from(EXECUTION_TIMEOUT_MAX_DAYS) * 86_400);
    let allowed = Duration::from_millis(1)..=longest;
    if new
        .execution_timeout
        .is_some_and(|timeout| !allowed.contains(&timeout))
    {
        return Err(PublishError::Timeout);
    }
    store
        .version_publish(new)
        .await?
        .ok_or(PublishError::DefinitionNotFound)
}
