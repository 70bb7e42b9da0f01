//! The error of one round of a service.

use leasehold_service::Panicked;
use thiserror::Error;

/// Why a round failed; the next round retries.
#[derive(Debug, Error)]
pub enum Error {
    /// A call to the store failed.
    #[error(transparent)]
    Store(#[from] leasehold_store::Error),
    /// A call to the engine failed.
    #[error(transparent)]
    Engine(#[from] leasehold_engine::Error),
    /// The step panicked, which is a bug.
    #[error(transparent)]
    Panicked(#[from] Panicked),
}

/// The result of a round.
pub type Result<T> = std::result::Result<T, Error>;
