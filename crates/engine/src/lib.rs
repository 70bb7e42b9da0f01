//! The engine port: what Leasehold asks of whatever runs its executions, and the answers it understands. Knows no engine.
//!
//! An engine is told to start an execution, is asked what became of it, and can be told to stop it. It never writes to a
//! store: what its answers mean for requests and slots is decided by whoever asked.

mod describe;
mod engine;
mod error;
mod start;

pub use describe::{Description, EndedPage};
pub use engine::{Engine, Told};
pub use error::{Error, Result};
pub use start::{Start, StartOutcome};
