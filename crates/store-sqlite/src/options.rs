//! Options of the SQLite store. The defaults suit a server.

use leasehold_store::Clock;
use std::time::Duration;

/// Options of a SQLite store.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// The clock of the store. The database runs in this process, so its clock is this machine's; the thread that runs
    /// an operation reads it once.
    pub clock: Clock,
    /// Number of reader connections; at least one.
    pub readers: usize,
    /// How long a read may take: its caller waits, and few reads run at once. Drift checks and diagnoses may take longer. Not for a store in memory, whose
    /// reads share the writer's connection.
    pub read_timeout: Duration,
    /// For the group commit: maximum number of operations in one commit (one fsync); at least one.
    pub max_group: usize,
    /// For the group commit: how long a group may take in operations that are already queued before it commits. An idle store never waits.
    pub max_group_time: Duration,
    /// Capacity of the writer's queue; callers wait while it is full. At least one.
    pub max_waiting: usize,
    /// How long to wait for SQLite's file lock, which only an external tool can hold.
    pub busy_timeout: Duration,
    /// Page cache of the writer, in KiB; each reader gets a quarter of it.
    pub cache_kib: u32,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            clock: Clock::Database,
            readers: 4,
            read_timeout: Duration::from_secs(30),
            max_group: 256,
            max_group_time: Duration::from_millis(10),
            max_waiting: 4_096,
            busy_timeout: Duration::from_secs(1),
            cache_kib: 64 * 1024,
        }
    }
}
