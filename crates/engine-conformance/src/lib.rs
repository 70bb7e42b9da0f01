//! One suite that says what an engine of graphs is: every promise of the engine port as a case, run over each engine. Knows no engine and no database.
//!
//! An engine's test file gives a function that makes an [`EngineFixture`], and expands the suite over it:
//!
//! ```text
//! async fn fixture() -> EngineFixture {
//!     EngineFixture::new(engine, store).guarded(whatever_must_live_as_long)
//! }
//!
//! // The path is used inside modules: begin it with `crate`.
//! leasehold_engine_conformance::suite!(crate::fixture);
//! ```
//!
//! What a fixture promises: its engine puts the jobs of `task` nodes into its store's WorkQueue, its `http` nodes may call 127.0.0.1, jobs whose lease
//! has run out come back within seconds, and nobody else claims requests in the store. Cases share nothing but the fixture, so one may be
//! used for several cases at once if each has a queue of its own.
//!
//! Everything here panics when an engine breaks its promise.

mod crew;
mod fixture;
mod graphs;
mod local_server;
mod prediction;
mod suite;

pub mod call;
pub mod ending;
pub mod flow;
pub mod many;
pub mod retry;
pub mod start;
pub mod stop;
pub mod trace;

pub use crew::Crew;
pub use fixture::EngineFixture;
pub use local_server::LocalServer;
pub use many::GRAPHS_VARIABLE;
