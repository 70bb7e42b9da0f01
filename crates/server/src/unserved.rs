//! When to say that calls cannot be served: at once, then at most once a minute with how many they were. Knows no call.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const SUM_UP_EVERY: Duration = Duration::from_secs(60);

/// Calls that one condition kept from being served.
pub(crate) struct Unserved(Mutex<Said>);

struct Said {
    at: Option<Instant>,
    /// How many calls since.
    times: u64,
}

impl Unserved {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Said { at: None, times: 0 }))
    }

    /// Takes note of one more; how many they were since the last line, if it is time for another.
    pub(crate) fn one_more(&self, now: Instant) -> Option<u64> {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        said.times = said.times.saturating_add(1);
        let silent = said
            .at
            .is_some_and(|at| now.saturating_duration_since(at) < SUM_UP_EVERY);
        if silent {
            return None;
        }
        said.at = Some(now);
        Some(std::mem::take(&mut said.times))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_calls_in_a_minute_are_two_lines() {
        let unserved = Unserved::new();
        let began = Instant::now();
        let at = |millis| began + Duration::from_millis(millis);
        assert_eq!(unserved.one_more(began), Some(1));
        for call in 1..1_000 {
            assert_eq!(unserved.one_more(at(call * 59)), None);
        }
        assert_eq!(unserved.one_more(at(60_000)), Some(1_000));
    }
}
