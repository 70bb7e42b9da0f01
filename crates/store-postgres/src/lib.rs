//! The PostgreSQL store: the port's promises kept by PostgreSQL 14 or newer. Knows SQL and nothing of HTTP or engines.
//!
//! SQL lives in `sql/<noun>/<verb>.sql`, one statement each, in `sql/functions/` and in `migrations/`. How claiming works, and why, is in
//! `docs/adr/0001-the-claim.md`.

mod capacity;
mod change;
mod clock;
mod definition;
mod diagnosis;
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
mod overview;
mod place;
mod pool;
mod port;
mod prune;
mod queue;
mod request;
mod row;
mod store;
mod transaction;
mod version;
mod wake;
mod workspace;

pub use function::{SqlFunction, functions};
pub use migrate::{MIGRATIONS, migration_script, schema_checksum};
pub use options::PostgresOptions;
pub use store::PostgresStore;
