//! How long a waiter for jobs pauses before it subscribes again after notifications that brought it no job. Pure.

use std::time::Duration;

/// Returns the pause after so many spurious wakeups in a row: rounds that a notification started and that found no job. While one waiter is subscribed,
/// every enqueue sends a notification (NOTIFY in PostgreSQL). A waiter that is woken but finds no job (jobs of other queues, for example) therefore pauses
/// first, which coalesces the notifications of that time; ADR 4 has the numbers.
pub const fn spurious_wakeup_delay(spurious: u32) -> Duration {
    Duration::from_millis(match spurious {
        // One is normal: a job enqueued by this process may notify twice, directly and through the database.
        0 | 1 => 0,
        2 => 20,
        3 => 50,
        _ => 100,
    })
}

/// After this long without a notification, the count of spurious wakeups starts again at zero.
pub const QUIET_PERIOD: Duration = Duration::from_secs(1);
