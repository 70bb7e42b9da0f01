//! What can go wrong when an engine is asked something, apart from a start, whose outcomes are values.

use thiserror::Error;

/// An engine's call that brought no answer to act on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// The engine cannot be reached or does not serve us now: its trouble, not that of what was asked.
    #[error("the engine is unavailable: {0}")]
    Unavailable(String),
    /// The engine answered, but not with anything that can be acted on.
    #[error("the engine answered: {0}")]
    Failed(String),
}

/// What an engine's call brings.
pub type Result<T> = std::result::Result<T, Error>;
