//! The PostgreSQL store: the port's promises kept by PostgreSQL 14 or newer. Knows SQL and nothing of HTTP or engines.
//!
//! SQL lives in `sql/<noun>/<verb>.sql`, one statement each, in `sql/functions/` and in `migrations/`. How claiming works, and why, is in
//! `docs/adr/0001-the-claim.md`.

mod capacity;
mod change;
mod database;
mod definition;
mod error;
mod execution;
mod function;
mod graph;
mod instance;
mod job;
mod key;
mod listener;
mod lock;
mod migrate;
mod options;
mod place;
mod pool;
mod prune;
mod queue;
mod request;
mod row;
mod store;
mod transaction;
mod wake;
mod workspace;

pub use function::{SqlFunction, functions};
pub use migrate::{MIGRATIONS, migration_script, schema_checksum};
pub use options::PostgresOptions;
pub use store::PostgresStore;

/// The files that statements include, for programs that read statements from their files.
pub const INCLUDES: &[leasehold_store::sql::Include] = leasehold_store::includes![
    "execution/columns",
    "job/columns",
    "job/places",
    "queue/columns",
    "request/columns",
    "request/given",
];
