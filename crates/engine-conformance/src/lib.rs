//! The conformance suite for engines that run graphs: one test case for each guarantee of the engine port, run by every engine. Knows no engine and no database.
//!
//! An engine's test file has a function that creates an [`EngineFixture`], and expands the suite with it:
//!
//! ```text
//! async fn fixture() -> EngineFixture {
//!     EngineFixture::new(engine, store).guarded(guard)
//! }
//!
//! // The path is used inside modules: start it with `crate`.
//! leasehold_engine_conformance::suite!(crate::fixture);
//! ```
//!
//! Requirements for a fixture: its engine enqueues the jobs of `task` nodes in the WorkQueue of its store, its `http` nodes may call 127.0.0.1, expired
//! jobs are requeued within seconds, and no other process claims requests in the store. Cases share only the fixture, so several cases may use
//! one engine and store concurrently if each has its own queue.
//!
//! A case panics if the engine violates the guarantee.

mod fixture;
mod graphs;
mod local_server;
mod prediction;
mod suite;
mod task_workers;

pub mod call;
pub mod ending;
pub mod flow;
pub mod many;
pub mod retry;
pub mod start;
pub mod stop;
pub mod trace;

pub use fixture::EngineFixture;
pub use local_server::LocalServer;
pub use many::GRAPHS_VARIABLE;
pub use task_workers::TaskWorkers;
