//! A JSON Schema validator with bounds, for schemas that tenants write. Knows no IO, no async and no other crate of Leasehold than the core.
//!
//! [`Schema::compile`] checks a schema as its meta-schema would and refuses what could take too long or too much memory.
//! [`Schema::validate`] stops at the first mismatch, or when its steps or its deadline are used up.

mod compile;
mod content;
mod dialect;
mod document;
mod equality;
mod error;
mod evaluate;
mod expansion;
mod format;
#[cfg(test)]
mod fuzz_tests;
mod meter;
mod number;
mod pattern;
mod program;
mod text;
mod uri;

pub use error::{Mismatch, SchemaError, SchemaLimit, SchemaProblem, ValidationError};
pub use meter::{ValidationLimit, ValidationLimits};
pub use pattern::PatternProblem;

use program::Program;
use serde_json::Value;

/// A compiled schema. Validations share it between threads.
#[derive(Debug)]
pub struct Schema(Program);

impl Schema {
    /// Compiles a schema, or returns the first rule that it breaks and where. The caller bounds the bytes of the document;
    /// everything else is bounded here. Needs no more than 2 MiB of stack.
    pub fn compile(document: &Value) -> Result<Self, SchemaError> {
        compile::compile(document).map(Self)
    }

    /// Validates a value, or returns its first mismatch, or the limit that stopped the validation. Needs no more than 2 MiB of stack.
    pub fn validate(&self, value: &Value, limits: ValidationLimits) -> Result<(), ValidationError> {
        evaluate::evaluate(&self.0, value, limits)
    }

    /// Returns an estimate of the memory that the compiled schema uses.
    pub fn bytes(&self) -> usize {
        self.0.bytes
    }
}
