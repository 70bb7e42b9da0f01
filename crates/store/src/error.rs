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
    /// The database cannot be reached, the connection broke, or the machine cannot write now; whether the operation was committed may be unknown.
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
    /// A position in a history that the database has left: it was restored, failed over or moved, or what follows was deleted.
    #[error("{0}")]
    Gone(String),
    /// Another process uses the file.
    #[error("{0}")]
    Owned(String),
    /// The schema does not match this program.
    #[error("{0}")]
    Schema(String),
    /// A file is damaged, or a row is invalid.
    #[error("the store is damaged or failed: {0}")]
    Broken(String),
}

impl ErrorKind {
    /// Returns whether the failure may concern one item of a call only: the store itself is available.
    pub fn concerns_one_item(&self) -> bool {
        match self {
            Self::Constraint(_) | Self::Value(_) | Self::Broken(_) => true,
            Self::Unavailable(_)
            | Self::Contended(_)
            | Self::Gone(_)
            | Self::Owned(_)
            | Self::Schema(_) => false,
        }
    }
}

/// What a database reports about itself, whatever its error codes. The adapters map their codes to conditions, and
/// [`Condition::kind`] maps conditions to kinds, so both stores treat the same trouble alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The disk is full.
    DiskFull,
    /// The operating system failed to read or write a file.
    Io,
    /// The file, the file system or the server accepts no writes now.
    ReadOnly,
    /// Memory, connections or open files are used up.
    Exhausted,
    /// The database starts, stops, refuses the connection, or the connection broke.
    Unreachable,
    /// The operation was interrupted together with its transaction.
    Interrupted,
    /// Another transaction holds a lock or changed the same rows, or the operation was cancelled; nothing changed.
    Conflict,
    /// A value does not fit its column.
    Value,
    /// A file or a row is damaged, or the failure is unknown.
    Damaged,
}

impl Condition {
    /// Returns the kind of a failure with this condition and message.
    pub fn kind(self, message: impl Into<String>) -> ErrorKind {
        let message = message.into();
        match self {
            Self::DiskFull
            | Self::Io
            | Self::ReadOnly
            | Self::Exhausted
            | Self::Unreachable
            | Self::Interrupted => ErrorKind::Unavailable(message),
            Self::Conflict => ErrorKind::Contended(message),
            Self::Value => ErrorKind::Value(message),
            Self::Damaged => ErrorKind::Broken(message),
        }
    }
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

    /// Returns whether the failure may concern one item of the call only: the store itself is available.
    pub fn concerns_one_item(&self) -> bool {
        self.kind.concerns_one_item()
    }

    /// Returns whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self.kind {
            ErrorKind::Unavailable(_) | ErrorKind::Contended(_) => true,
            ErrorKind::Constraint(_)
            | ErrorKind::Value(_)
            | ErrorKind::Gone(_)
            | ErrorKind::Owned(_)
            | ErrorKind::Schema(_)
            | ErrorKind::Broken(_) => false,
        }
    }
}
