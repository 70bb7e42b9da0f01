//! The engine port: the trait that every workflow engine implements, its parameters and outcomes. Knows no engine.
//!
//! An engine starts, describes, cancels and terminates executions. It never writes to a store: the caller decides what its answers mean for
//! requests and slots.

mod describe;
mod engine;
mod error;
mod start;

pub use describe::{Description, EndedPage};
pub use engine::{Engine, StopAck};
pub use error::{Error, Result};
pub use start::{Start, StartOutcome, StartPrevented};
