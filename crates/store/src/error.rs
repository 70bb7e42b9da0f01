//! Unexpected failures of a store, and whether a retry can help.

use thiserror::Error;

/// The result of a store operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

type Source = Box<dyn std::error::Error + Send + Sync>;

/// An unexpected failure of a store.
#[derive(Debug, Error)]
#[error("{context}: {kind}")]
pub struct Error {
    /// The kind of failure.
    pub kind: ErrorKind,
    /// The operation that failed.
    pub context: &'static str,
    /// The driver's own error.
    #[source]
    pub source: Option<Source>,
}

/// The kinds of failure that callers distinguish.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ErrorKind {
    /// The database cannot be reached or the connection broke; whether the operation was committed may be unknown.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// The database rolled the transaction back because of a conflict with another; nothing changed.
    #[error("transaction conflict, retry: {0}")]
    Contended(String),
    /// A named constraint of the schema was violated.
    #[error("constraint `{0}` violated")]
    Constraint(String),
    /// A value does not fit its column (NUL in a text, a number out of range).
    #[error("value cannot be stored: {0}")]
    Value(String),
    /// Another process uses the file.
    #[error("{0}")]
    Owned(String),
    /// The schema does not match this program.
    #[error("{0}")]
    Schema(String),
    /// The disk is full, a file is damaged, or a row is invalid.
    #[error("the store is damaged or failed: {0}")]
    Broken(String),
}

impl Error {
    /// Creates an error of `kind` in the operation `context`.
    pub fn new(context: &'static str, kind: ErrorKind) -> Self {
        Self {
            kind,
            context,
            source: None,
        }
    }

    /// Adds the driver's error as the source.
    pub fn because(mut self, source: impl Into<Source>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Returns whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self.kind {
            ErrorKind::Unavailable(_) | ErrorKind::Contended(_) => true,
            ErrorKind::Constraint(_)
            | ErrorKind::Value(_)
            | ErrorKind::Owned(_)
            | ErrorKind::Schema(_)
            | ErrorKind::Broken(_) => false,
        }
    }
}
