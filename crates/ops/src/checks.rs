//! Validation of fields, shared by the operations. Knows none of them.

use leasehold_core::text::{self, TextProblem};
use thiserror::Error;

/// A field that is invalid; nothing was stored.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidField {
    /// A text is invalid.
    #[error("{field} {problem}")]
    Text {
        /// The field.
        field: String,
        /// The problem.
        problem: TextProblem,
    },
    /// A number is out of range.
    #[error("{field} must be between {min} and {max}, not {given}")]
    Number {
        /// The field.
        field: String,
        /// The lowest allowed.
        min: u64,
        /// The highest allowed.
        max: u64,
        /// The given value.
        given: u64,
    },
}

impl InvalidField {
    /// Returns the invalid field, like `name` or `queues[3]`.
    pub fn field(&self) -> &str {
        match self {
            Self::Text { field, .. } | Self::Number { field, .. } => field,
        }
    }
}

pub(crate) fn text(field: impl Into<String>, value: &str, max: usize) -> Result<(), InvalidField> {
    text::check(value, max).map_err(|problem| InvalidField::Text {
        field: field.into(),
        problem,
    })
}

pub(crate) fn number(field: &str, given: u64, min: u64, max: u64) -> Result<(), InvalidField> {
    if (min..=max).contains(&given) {
        return Ok(());
    }
    Err(InvalidField::Number {
        field: field.to_owned(),
        min,
        max,
        given,
    })
}
