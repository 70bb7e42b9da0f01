//! What is wrong with something that was asked for: the field, and what is allowed. Shared by the operations; knows none of them.

use leasehold_core::text::{self, TextProblem};
use thiserror::Error;

/// A value that is refused before anything is stored.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refused {
    /// A text that is not acceptable.
    #[error("{field} {problem}")]
    Text {
        /// Which one.
        field: String,
        /// What is wrong with it.
        problem: TextProblem,
    },
    /// A number out of range.
    #[error("{field} must be between {min} and {max}, not {given}")]
    Number {
        /// Which one.
        field: String,
        /// The lowest allowed.
        min: u64,
        /// The highest allowed.
        max: u64,
        /// What was given.
        given: u64,
    },
}

impl Refused {
    /// The field that was refused, like `name` or `queues[3]`.
    pub fn field(&self) -> &str {
        match self {
            Self::Text { field, .. } | Self::Number { field, .. } => field,
        }
    }
}

pub(crate) fn text(field: impl Into<String>, value: &str, max: usize) -> Result<(), Refused> {
    text::check(value, max).map_err(|problem| Refused::Text {
        field: field.into(),
        problem,
    })
}

pub(crate) fn number(field: &str, given: u64, min: u64, max: u64) -> Result<(), Refused> {
    if (min..=max).contains(&given) {
        return Ok(());
    }
    Err(Refused::Number {
        field: field.to_owned(),
        min,
        max,
        given,
    })
}
