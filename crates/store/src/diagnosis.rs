//! What a database says of itself: facts that tell whether it is fit to be a store. Judged elsewhere.

use leasehold_core::Timestamp;
use std::time::Duration;

/// What a store found out about the database under it.
#[derive(Clone, Debug, PartialEq)]
pub enum Diagnosis {
    /// It is PostgreSQL.
    Postgres(PostgresFacts),
    /// It is an SQLite file.
    Sqlite(SqliteFacts),
    /// It is in memory, and there is nothing to say.
    Memory,
}

/// What PostgreSQL says.
#[derive(Clone, Debug, PartialEq)]
pub struct PostgresFacts {
    /// The server's version as it calls itself.
    pub version: String,
    /// The same as a number: 160004 is 16.4.
    pub version_number: u32,
    /// Whether it is a replica that only reads.
    pub in_recovery: bool,
    /// The server's clock.
    pub now: Timestamp,
    /// What `synchronous_commit` is for those who do not say. Leasehold's own connections never use `off`.
    pub synchronous_commit: String,
    /// Whether writes are forced to disk.
    pub fsync: bool,
    /// Whether whole pages are logged after a checkpoint.
    pub full_page_writes: bool,
    /// Whether dead rows are cleaned up at all.
    pub autovacuum: bool,
    /// Connections there are, of everybody.
    pub connections: u32,
    /// Connections there may be.
    pub max_connections: u32,
    /// Connections to this database.
    pub ours: u32,
    /// How long the oldest snapshot has been open that keeps dead rows from being cleaned up, and whose it is.
    pub oldest_snapshot: Option<(Duration, String)>,
    /// Sessions of other roles that hold a snapshot whose age this role may not see.
    pub unseen_snapshots: u32,
    /// How many sessions wait for a lock of this database.
    pub lock_waits: u32,
    /// Transactions since the oldest row that is not frozen.
    pub wraparound_age: u64,
    /// The tables that are written most.
    pub tables: Vec<TableFacts>,
}

/// What PostgreSQL says of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFacts {
    /// Its name.
    pub name: String,
    /// Bytes on disk, with its indexes.
    pub bytes: u64,
    /// Rows, about.
    pub rows: u64,
    /// Dead rows that are not cleaned up yet, about.
    pub dead: u64,
    /// Whether the table's own options leave autovacuum on.
    pub autovacuum: bool,
    /// When it was cleaned up last by itself.
    pub last_autovacuum: Option<Timestamp>,
}

/// What SQLite says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteFacts {
    /// The library's version.
    pub version: String,
    /// `wal`, or it is not set up as it should be.
    pub journal_mode: String,
    /// 2 is `FULL`: what was answered survives a power loss.
    pub synchronous: u32,
    /// Bytes of the file.
    pub bytes: u64,
    /// Of them unused.
    pub free_bytes: u64,
    /// Bytes of the log beside it.
    pub log_bytes: u64,
    /// What a quick check of the file found wrong; none if nothing.
    pub damage: Option<String>,
    /// Whether the file was too large to be checked quickly.
    pub unchecked: bool,
}
