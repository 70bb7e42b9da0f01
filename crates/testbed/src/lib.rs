//! Fixtures for tests: a migrated store per test, a workspace with a published definition, a server in the test process.
//!
//! The crate builds on `leasehold-testkit`, which starts servers and programs and depends on none of Leasehold's crates. It is
//! for tests only: a failed set-up panics. Use it from tests under `tests/`; a unit test inside a crate that this one depends
//! on would see that crate's types twice.
//!
//! | feature | adds |
//! |---|---|
//! | none | [`TestWorkspace`] on any store |
//! | `postgres`, `sqlite` | `TestBackend`: PostgreSQL, a SQLite file, SQLite in memory |
//! | `server` | `TestServer` on a backend, with keys and in-process calls |
//! | `client` | clients of that server |
#![allow(clippy::unwrap_used, reason = "a failed set-up fails the test")]

#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod backend;
mod definition;
#[cfg(feature = "server")]
mod engine;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "server")]
mod server;
#[cfg(feature = "sqlite")]
mod sqlite;
mod workspace;

#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub use backend::{BackendKind, BackendOptions, TestBackend};
pub use definition::{binding, create_definition, create_workspace, publish_version};
#[cfg(feature = "server")]
pub use engine::{Pollers, TestEngine};
#[cfg(feature = "server")]
pub use server::{KeyedWorkspace, ServerEngine, ServerSetup, TestResponse, TestServer};
pub use workspace::{TestWorkspace, USER, WorkspaceOptions};
