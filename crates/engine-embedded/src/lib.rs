//! The engine port on the WorkQueue: graphs run in the store, and this room works on their calls and pauses. Knows no database and no HTTP route.
//!
//! [`EmbeddedEngine`] answers what is asked of an engine; every answer is one operation of the store. [`NodeRunners`] is what works: nodes whose work
//! is Leasehold's own (`http`, `delay`) are jobs on reserved queues, done here by ordinary workers. `task` nodes are done by whoever claims
//! their queue.

mod engine;
mod nodes;
mod runners;

pub use engine::{EmbeddedEngine, EmbeddedOptions};
pub use runners::{NodeRunners, RunnerOptions};
