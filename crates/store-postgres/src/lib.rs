//! The PostgreSQL store: implements the store port on PostgreSQL 14 to 18. Knows SQL, and nothing of HTTP or engines.
//!
//! SQL is in `sql/<noun>/<verb>.sql`, one statement a file, in `sql/functions/` and in `migrations/`. `docs/adr/0001-the-claim.md` explains
//! how claiming works and why.

mod audit;
mod change;
mod database;
mod definition;
mod drift;
mod epoch;
mod error;
mod event_log;
mod execution;
mod function;
mod graph;
mod installation;
mod instance;
mod job;
mod key;
mod listener;
mod lock;
mod lock_wait;
mod migrate;
mod notification;
mod options;
mod param;
mod pool;
mod prune;
mod queue;
mod queue_access;
mod request;
mod row;
mod schema;
mod session;
mod snapshot;
mod store;
mod stream_position;
mod tls;
mod transaction;
mod varint;
mod workspace;

pub use function::{SqlFunction, functions};
pub use migrate::{MIGRATIONS, migration_script, schema_checksum};
pub use options::{Pooler, PostgresOptions};
pub use store::PostgresStore;

/// The SQL fragments that statements include, for programs that read statements from their files.
pub const INCLUDES: &[leasehold_store::sql::Include] = leasehold_store::includes![
    "audit/columns",
    "execution/columns",
    "job/columns",
    "job/joins",
    "key/columns",
    "queue/columns",
    "request/columns",
    "request/given";
    "schema" => schema::DEFAULT_SCHEMA,
];
