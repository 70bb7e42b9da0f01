//! The storage port: the traits that every store implements, one per noun, with their parameters, outcomes and errors. Knows no database and no SQL.
//!
//! A method is one atomic transaction, and its effects are durable when it returns. Expected outcomes are values; an [`Error`] is
//! unexpected. A method that takes a workspace treats the data of other workspaces as if it did not exist.

mod clock;
mod database;
mod epoch;
mod error;
mod layer;
mod migration;
mod offload;
mod page;
mod store;
mod store_trait;
mod turns;
mod version_cache;

pub mod audit;
pub mod change;
pub mod definition;
pub mod diagnosis;
pub mod drift;
pub mod execution;
pub mod failpoint;
pub mod graph;
pub mod installation;
pub mod instance;
pub mod job;
pub mod key;
pub mod lock;
pub mod node_payload;
pub mod notification;
pub mod prune;
pub mod queue;
pub mod record;
pub mod request;
pub mod sql;
pub mod workspace;

pub use audit::Actor;
pub use clock::{Clock, ManualClock};
pub use database::{Capabilities, DatabaseObserver, DatabaseStore};
pub use epoch::{EpochId, PerEpoch};
pub use error::{Condition, Error, ErrorKind, Result};
pub use layer::{LayeredStore, StoreCall, StoreLayer};
pub use migration::{
    AppliedMigration, Migration, MigrationState, MigrationStatus, SchemaObserver, SchemaStore,
    Script, StepKind, checksum, compare_migrations, header_number, last_number, schema_refusal,
};
pub use offload::run_off_thread;
pub use page::Page;
pub use store::{Store, StoreObserver};
pub use turns::Turns;

/// Generates a time-ordered id; ids of one process rise in the order of their creation.
pub fn fresh_id<T: From<uuid::Uuid>>() -> T {
    uuid::Uuid::now_v7().into()
}
