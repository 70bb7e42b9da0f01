//! Compiles and validates for tests.

use leasehold_core::limits::VALIDATION_MAX_STEPS;
use leasehold_schema::{Mismatch, Schema, SchemaError, ValidationError, ValidationLimits};
use serde_json::{Value, json};

pub(crate) const LIMITS: ValidationLimits = ValidationLimits {
    steps: VALIDATION_MAX_STEPS,
    deadline: None,
};

pub(crate) const DRAFT_4: &str = "http://json-schema.org/draft-04/schema#";
pub(crate) const DRAFT_6: &str = "http://json-schema.org/draft-06/schema#";
pub(crate) const DRAFT_7: &str = "http://json-schema.org/draft-07/schema#";
pub(crate) const DRAFT_2019: &str = "https://json-schema.org/draft/2019-09/schema";
pub(crate) const DRAFT_2020: &str = "https://json-schema.org/draft/2020-12/schema";
pub(crate) const DRAFTS: [&str; 5] = [DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019, DRAFT_2020];

pub(crate) fn compile(document: &Value) -> Schema {
    Schema::compile(document).unwrap_or_else(|error| panic!("{document}: {error}"))
}

pub(crate) fn refusal(document: &Value) -> SchemaError {
    match Schema::compile(document) {
        Ok(_) => panic!("accepted: {document}"),
        Err(error) => error,
    }
}

pub(crate) fn is_valid(schema: &Schema, value: &Value) -> bool {
    match schema.validate(value, LIMITS) {
        Ok(()) => true,
        Err(ValidationError::Mismatch(_)) => false,
        Err(ValidationError::LimitExceeded(limit)) => panic!("{value}: {limit}"),
    }
}

/// Returns the mismatch of a value.
pub(crate) fn mismatch(document: &Value, value: &Value) -> Mismatch {
    match compile(document).validate(value, LIMITS) {
        Err(ValidationError::Mismatch(mismatch)) => mismatch,
        other => panic!("{document} {value}: {other:?}"),
    }
}

/// Adds `$schema`.
pub(crate) fn in_draft(draft: &str, mut document: Value) -> Value {
    document["$schema"] = json!(draft);
    document
}

/// Asserts which values a schema accepts: the items of two arrays.
pub(crate) fn assert_accepts(document: &Value, valid: Value, invalid: Value) {
    let schema = compile(document);
    for value in valid.as_array().unwrap() {
        assert!(is_valid(&schema, value), "{document} rejects {value}");
    }
    for value in invalid.as_array().unwrap() {
        assert!(!is_valid(&schema, value), "{document} accepts {value}");
    }
}
