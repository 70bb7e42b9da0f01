//! The embedded engine: graphs run in the store's WorkQueue, without another server. Knows no database and no HTTP route.
//!
//! [`EmbeddedEngine`] implements the engine port; every call is one operation of the store. [`NodeRunner`] runs the `http` and `delay` nodes, which are
//! jobs on reserved queues, with ordinary workers. Your own workers run `task` nodes.

mod engine;
mod nodes;
mod runner;

pub use engine::{EmbeddedEngine, EmbeddedOptions};
pub use runner::{NodeRunner, NodeRunnerOptions};
