//! JSON Schemas of params: compiled once, with every reference inside the document.

use leasehold_core::VersionId;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Compiled schemas kept at once.
const KEPT_MAX: usize = 1_000;

/// Compiles a schema, or says what is wrong with it.
pub(crate) fn compile(schema: &Value) -> Result<jsonschema::Validator, String> {
    jsonschema::validator_for(schema).map_err(|error| error.to_string())
}

/// The first place where params do not match: its JSON pointer and what is wrong there.
pub(crate) fn mismatch(
    validator: &jsonschema::Validator,
    params: &Value,
) -> Option<(String, String)> {
    let error = validator.iter_errors(params).next()?;
    Some((error.instance_path().to_string(), error.to_string()))
}

/// Compiled schemas by version. A version never changes, so none is ever out of date.
#[derive(Debug, Default)]
pub(crate) struct Schemas(Mutex<HashMap<VersionId, Option<Arc<jsonschema::Validator>>>>);

impl Schemas {
    pub(crate) fn get(&self, version: VersionId) -> Option<Option<Arc<jsonschema::Validator>>> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&version)
            .cloned()
    }

    pub(crate) fn keep(&self, version: VersionId, validator: Option<Arc<jsonschema::Validator>>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(version, validator);
    }
}
