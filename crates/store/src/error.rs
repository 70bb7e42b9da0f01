//! What can go wrong in a store that is nobody's expected outcome, and whether trying again can help.

use thiserror::Error;

/// The result of a store operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

type Source = Box<dyn std::error::Error + Send + Sync>;

/// An unexpected failure of a store.
#[derive(Debug, Error)]
#[error("{context}: {kind}")]
pub struct Error {
    /// What sort of failure it is.
    pub kind: ErrorKind,
    /// Which operation failed.
    pub context: &'static str,
    /// The driver's own error.
    #[source]
    pub source: Option<Source>,
}

/// The sorts of failure that callers tell apart.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ErrorKind {
    /// The database cannot be reached or went away; whether the operation happened may be unknown.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// Two transactions got in each other's way and the database gave one up; nothing happened.
    #[error("the store asks to try again: {0}")]
    Contended(String),
    /// A named constraint of the schema refused it.
    #[error("refused by the constraint `{0}`")]
    Constraint(String),
    /// A value that no column holds (NUL in a text, a number out of range).
    #[error("a value cannot be stored: {0}")]
    Value(String),
    /// The file belongs to another process.
    #[error("{0}")]
    Owned(String),
    /// The schema does not fit this program.
    #[error("{0}")]
    Schema(String),
    /// The disk is full, a file is damaged, a row makes no sense.
    #[error("the store is damaged or misbehaves: {0}")]
    Broken(String),
}

impl Error {
    /// An error of `kind` in the operation `context`.
    pub fn new(context: &'static str, kind: ErrorKind) -> Self {
        Self {
            kind,
            context,
            source: None,
        }
    }

    /// Keeps the driver's error as the cause.
    pub fn because(mut self, source: impl Into<Source>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Whether the same call may succeed later without anybody changing it.
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
