//! Errors of engine calls. A start has no error: its outcomes are values.

use thiserror::Error;

/// A failed engine call.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// The engine cannot be reached or rejects all calls now, for no fault of this call.
    #[error("the engine is unavailable: {0}")]
    Unavailable(String),
    /// The engine answered with an error.
    #[error("the engine returned an error: {0}")]
    Failed(String),
}

impl Error {
    /// Returns the cause alone, for a text that says itself that the engine failed.
    pub fn cause(&self) -> &str {
        match self {
            Self::Unavailable(cause) | Self::Failed(cause) => cause,
        }
    }
}

/// The result of an engine call.
pub type Result<T> = std::result::Result<T, Error>;
