//! How long a read may take. SQLite asks the limit of a connection every few thousand instructions. Knows no table.

use rusqlite::Connection;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The limit of reads that may read a whole table, as on PostgreSQL.
const LONG_TIMEOUT: Duration = Duration::from_secs(6 * 3600);
/// Reads that may read a whole table or file: no caller waits for them, except an operator.
const LONG: [&str; 2] = ["drift_check", "diagnose"];
/// Instructions of SQLite between two checks: less than a millisecond.
const CHECK_INTERVAL: i32 = 10_000;
/// No read is running.
const NEVER: u64 = u64::MAX;

/// Returns how long this read may take.
pub(crate) fn limit(context: &str, timeout: Duration) -> Duration {
    if LONG.contains(&context) {
        LONG_TIMEOUT.max(timeout)
    } else {
        timeout
    }
}

/// The time limit of the reads of one connection, one at a time.
pub(crate) struct ReadLimit {
    opened: Instant,
    /// When the read is interrupted, in milliseconds since `opened`.
    ends_at: Arc<AtomicU64>,
}

impl ReadLimit {
    /// Interrupts reads of this connection that exceed their limits.
    pub(crate) fn install(connection: &mut Connection) -> rusqlite::Result<Self> {
        let opened = Instant::now();
        let ends_at = Arc::new(AtomicU64::new(NEVER));
        let end = Arc::clone(&ends_at);
        let is_over = move || millis(opened.elapsed()) >= end.load(Ordering::Relaxed);
        connection.progress_handler(CHECK_INTERVAL, Some(is_over))?;
        Ok(Self { opened, ends_at })
    }

    /// Limits what the connection does until [`ReadLimit::end`].
    pub(crate) fn begin(&self, limit: Duration) {
        let end = self.opened.elapsed().saturating_add(limit);
        self.ends_at.store(millis(end), Ordering::Relaxed);
    }

    /// Ends the read.
    pub(crate) fn end(&self) {
        self.ends_at.store(NEVER, Ordering::Relaxed);
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(NEVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_for_a_waiting_caller_end_sooner_than_those_of_whole_tables() {
        let timeout = Duration::from_secs(30);
        assert_eq!(limit("job_list", timeout), timeout);
        assert_eq!(limit("queue_counts", timeout), timeout);
        assert_eq!(limit("drift_check", timeout), LONG_TIMEOUT);
    }
}
