//! JSON Schemas of params: compiled once and cached. References must stay inside the document.

use leasehold_core::VersionId;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The maximum number of cached schemas.
const CACHE_MAX: usize = 1_000;

/// Compiles a schema, or returns the error.
pub(crate) fn compile(schema: &Value) -> Result<jsonschema::Validator, String> {
    jsonschema::validator_for(schema).map_err(|error| error.to_string())
}

/// Returns the first mismatch of params: its JSON pointer and the error.
pub(crate) fn mismatch(
    validator: &jsonschema::Validator,
    params: &Value,
) -> Option<(String, String)> {
    let error = validator.iter_errors(params).next()?;
    Some((error.instance_path().to_string(), error.to_string()))
}

/// A cache of compiled schemas by version. Versions are immutable, so entries never become stale.
#[derive(Debug, Default)]
pub(crate) struct SchemaCache(Mutex<HashMap<VersionId, Option<Arc<jsonschema::Validator>>>>);

impl SchemaCache {
    pub(crate) fn get(&self, version: VersionId) -> Option<Option<Arc<jsonschema::Validator>>> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&version)
            .cloned()
    }

    pub(crate) fn insert(&self, version: VersionId, validator: Option<Arc<jsonschema::Validator>>) {
        let mut schemas = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if schemas.len() >= CACHE_MAX {
            schemas.clear();
        }
        schemas.insert(version, validator);
    }
}
