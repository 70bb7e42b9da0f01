//! How long whoever waits for jobs rests before it arms. Pure.

use std::time::Duration;

/// The rest after so many rounds in a row that brought nothing though the bell rang. Whoever is armed makes all who enqueue ring, so one
/// that is woken for nothing again and again (by jobs of other queues, say) rests first; ADR 4 has the numbers.
pub const fn rest_after(fruitless: u32) -> Duration {
    Duration::from_millis(match fruitless {
        // Once is usual: a job of this very process may ring twice, here and through the database.
        0 | 1 => 0,
        2 => 20,
        3 => 50,
        _ => 100,
    })
}

/// After so long without a ring the next one is not one of many.
pub const SILENCE: Duration = Duration::from_secs(1);
