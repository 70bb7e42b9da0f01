//! Throttles a repeated log message: the first is logged at once, then at most one per minute with the count. Knows no call.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const SUMMARY_INTERVAL: Duration = Duration::from_secs(60);

/// Counts occurrences of one condition between log messages.
pub(crate) struct LogThrottle(Mutex<ThrottleState>);

struct ThrottleState {
    logged_at: Option<Instant>,
    /// Occurrences since then.
    count: u64,
}

impl LogThrottle {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(ThrottleState {
            logged_at: None,
            count: 0,
        }))
    }

    /// Records one occurrence. Returns the count since the last message if another message is due.
    pub(crate) fn record(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.count = state.count.saturating_add(1);
        let throttled = state
            .logged_at
            .is_some_and(|at| now.saturating_duration_since(at) < SUMMARY_INTERVAL);
        if throttled {
            return None;
        }
        state.logged_at = Some(now);
        Some(std::mem::take(&mut state.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousand_occurrences_in_a_minute_are_two_messages() {
        let throttle = LogThrottle::new();
        let began = Instant::now();
        let at = |millis| began + Duration::from_millis(millis);
        assert_eq!(throttle.record(began), Some(1));
        for call in 1..1_000 {
            assert_eq!(throttle.record(at(call * 59)), None);
        }
        assert_eq!(throttle.record(at(60_000)), Some(1_000));
    }
}
