//! Facts about the database that `doctor` evaluates. Evaluates nothing itself.

use leasehold_core::Timestamp;
use std::time::Duration;

/// Facts about the database of a store.
#[derive(Clone, Debug, PartialEq)]
pub enum Diagnosis {
    /// PostgreSQL.
    Postgres(PostgresFacts),
    /// An SQLite file.
    Sqlite(SqliteFacts),
    /// An in-memory database, without facts.
    Memory,
}

/// Facts about a PostgreSQL server.
#[derive(Clone, Debug, PartialEq)]
pub struct PostgresFacts {
    /// The server's version as text.
    pub version: String,
    /// The server's version as a number: 160004 is 16.4.
    pub version_number: u32,
    /// Whether it is a read-only replica.
    pub in_recovery: bool,
    /// The server's clock.
    pub now: Timestamp,
    /// The default of `synchronous_commit`. Leasehold's own connections never use `off`.
    pub synchronous_commit: String,
    /// Whether writes are forced to disk.
    pub fsync: bool,
    /// Whether whole pages are logged after a checkpoint.
    pub full_page_writes: bool,
    /// Whether autovacuum is on.
    pub autovacuum: bool,
    /// Open connections of all clients.
    pub connections: u32,
    /// The maximum number of connections.
    pub max_connections: u32,
    /// Connections to this database.
    pub ours: u32,
    /// The age and the holder of the oldest snapshot that blocks vacuum.
    pub oldest_snapshot: Option<(Duration, String)>,
    /// Sessions of other roles that hold a snapshot whose age this role may not see.
    pub unseen_snapshots: u32,
    /// Sessions that wait for a lock in this database.
    pub lock_waits: u32,
    /// Age of the oldest unfrozen row, in transactions.
    pub wraparound_age: u64,
    /// Whether the role may attach and drop partitions of the event log; none without a schema.
    pub advances_event_log: Option<bool>,
    /// The tables with the most writes.
    pub tables: Vec<TableFacts>,
}

/// Facts about a PostgreSQL table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFacts {
    /// Its name.
    pub name: String,
    /// Bytes on disk, with its indexes.
    pub bytes: u64,
    /// Estimated rows.
    pub rows: u64,
    /// Estimated dead rows.
    pub dead: u64,
    /// Whether autovacuum is enabled for the table.
    pub autovacuum: bool,
    /// When autovacuum last processed the table.
    pub last_autovacuum: Option<Timestamp>,
}

/// Facts about an SQLite file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteFacts {
    /// The library's version.
    pub version: String,
    /// The journal mode; `wal` is required.
    pub journal_mode: String,
    /// The `synchronous` setting; 2 is `FULL`: committed data survives a power loss.
    pub synchronous: u32,
    /// Bytes of the file.
    pub bytes: u64,
    /// Unused bytes of the file.
    pub free_bytes: u64,
    /// Bytes of the write-ahead log.
    pub log_bytes: u64,
    /// The damage that a quick check of the file found.
    pub damage: Option<String>,
    /// Whether the file was too large for a quick check.
    pub unchecked: bool,
}
