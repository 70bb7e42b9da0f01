//! Params schemas: compiles them, caches them, and validates params, all on threads of their own and under one deadline per call.

mod cache;
mod pool;

use cache::SchemaCache;
pub(crate) use cache::VersionSchema;
use leasehold_core::limits::{VALIDATION_MAX_SECONDS, VALIDATION_MAX_STEPS};
use leasehold_core::{VersionId, WorkspaceId};
use leasehold_schema::{Schema, SchemaError, ValidationError, ValidationLimits};
use leasehold_store::request::NewRequest;
use leasehold_store::{EpochId, PerEpoch};
use pool::{PoolError, SchemaPool};
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Compiles params schemas and validates params. Reuse one: it caches compiled schemas and has threads.
#[derive(Debug, Default)]
pub struct ParamsSchemas {
    cache: PerEpoch<SchemaCache>,
    pool: SchemaPool,
}

/// Why schema work was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SchemaWorkError {
    /// All threads were busy until the deadline, or too many calls wait already.
    #[error("too many calls compile or validate params schemas; try again later")]
    Overloaded,
    /// The work panicked.
    #[error("schema validation crashed")]
    Crashed,
}

impl From<PoolError> for SchemaWorkError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Overloaded => Self::Overloaded,
            PoolError::Crashed => Self::Crashed,
        }
    }
}

/// Returns the time until which a call that starts now may do schema work.
pub(crate) fn deadline() -> Instant {
    Instant::now() + Duration::from_secs(VALIDATION_MAX_SECONDS)
}

/// The first request whose params do not match, and why.
pub(crate) struct FirstMismatch {
    pub(crate) index: usize,
    pub(crate) error: ValidationError,
}

impl ParamsSchemas {
    /// Compiles a schema.
    pub(crate) async fn compile(
        &self,
        workspace: WorkspaceId,
        document: Value,
        deadline: Instant,
    ) -> Result<Result<Schema, SchemaError>, SchemaWorkError> {
        let work = move || Schema::compile(&document);
        Ok(self.pool.run(workspace, deadline, work).await?)
    }

    /// Returns the schema of a version that was cached in this epoch of the store.
    pub(crate) fn cached(
        &self,
        epoch: Option<EpochId>,
        version: VersionId,
    ) -> Option<VersionSchema> {
        self.cache.of(epoch).get(version)
    }

    /// Caches the schema of a version. Versions are immutable, so entries are valid as long as the epoch.
    pub(crate) fn cache(&self, epoch: Option<EpochId>, version: VersionId, schema: VersionSchema) {
        self.cache.of(epoch).insert(version, schema);
    }

    /// Validates the params of each request that has a schema, and returns the requests and the first mismatch.
    pub(crate) async fn validate(
        &self,
        workspace: WorkspaceId,
        requests: Vec<NewRequest>,
        schemas: Vec<Option<Arc<Schema>>>,
        deadline: Instant,
    ) -> Result<(Vec<NewRequest>, Option<FirstMismatch>), SchemaWorkError> {
        if schemas.iter().all(Option::is_none) {
            return Ok((requests, None));
        }
        let limits = ValidationLimits {
            steps: VALIDATION_MAX_STEPS,
            deadline: Some(deadline),
        };
        let work = move || {
            let pairs = requests.iter().zip(&schemas).enumerate();
            let mut with_schema =
                pairs.filter_map(|(index, (new, schema))| Some((index, new, schema.as_ref()?)));
            let mismatch = with_schema.find_map(|(index, new, schema)| {
                // One tree at a time: a tree takes up to a hundred times the memory of its text.
                let params = new.params.read::<Value>().unwrap_or_default();
                let error = schema.validate(&params, limits).err()?;
                Some(FirstMismatch { index, error })
            });
            (requests, mismatch)
        };
        Ok(self.pool.run(workspace, deadline, work).await?)
    }
}
