//! The storage port: the traits every store implements, one a noun, their parameters, outcomes and errors. Knows no database and no SQL.
//!
//! One method is one atomic transition: it happens wholly or not at all, and what it answered is durable. Expected
//! outcomes are values; an [`Error`] is the unexpected. Every method that takes a workspace sees only that
//! workspace's things: another's are as if they did not exist.

mod clock;
mod database;
mod error;
mod layer;
mod migration;
mod page;
mod store;
mod store_trait;
mod version_cache;

pub mod capacity;
pub mod change;
pub mod definition;
pub mod diagnosis;
pub mod execution;
pub mod failpoint;
pub mod graph;
pub mod instance;
pub mod job;
pub mod key;
pub mod lock;
pub mod prune;
pub mod queue;
pub mod record;
pub mod request;
pub mod sql;
pub mod wake;
pub mod workspace;

pub use clock::{Clock, ManualClock};
pub use database::{Capabilities, DatabaseObserver, DatabaseStore};
pub use error::{Error, ErrorKind, Result};
pub use layer::{LayeredStore, StoreCall, StoreLayer};
pub use migration::{
    Migration, MigrationState, MigrationStatus, SchemaObserver, SchemaStore, Script, StepKind,
    checksum,
};
pub use page::Page;
pub use store::{Store, StoreObserver};

/// A new time-ordered id; ids made by one process rise in the order they were made.
pub fn fresh_id<T: From<uuid::Uuid>>() -> T {
    uuid::Uuid::now_v7().into()
}
