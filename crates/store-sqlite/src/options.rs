//! What a SQLite store can be told. Every number has a default that suits a server.

use leasehold_store::Clock;
use std::time::Duration;

/// How a SQLite store shall work.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// Whose clock judges. The database lives in this process, so its own clock is this machine's, read once an
    /// operation by the thread that runs it.
    pub clock: Clock,
    /// How many connections serve reads at once; at least one.
    pub readers: usize,
    /// How many operations one commit carries at most; at least one.
    pub max_group: usize,
    /// How long a commit waits for operations that are already in the line; an idle store never waits.
    pub max_group_time: Duration,
    /// How many operations may wait before callers are held back; at least one.
    pub max_waiting: usize,
    /// How long to wait for a lock that only a hand-held tool could hold.
    pub busy_timeout: Duration,
    /// Memory for pages of the writer, in KiB; each reader has a quarter of it.
    pub cache_kib: u32,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            clock: Clock::Database,
            readers: 4,
            max_group: 256,
            max_group_time: Duration::from_millis(10),
            max_waiting: 4_096,
            busy_timeout: Duration::from_secs(1),
            cache_kib: 64 * 1024,
        }
    }
}
