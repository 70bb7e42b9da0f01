//! What can keep a service from doing its round.

use thiserror::Error;

/// A round that did not go through; the next one tries again.
#[derive(Debug, Error)]
pub enum Error {
    /// The store did not do it.
    #[error(transparent)]
    Store(#[from] leasehold_store::Error),
    /// The engine did not answer.
    #[error(transparent)]
    Engine(#[from] leasehold_engine::Error),
}

/// What a round brings.
pub type Result<T> = std::result::Result<T, Error>;
