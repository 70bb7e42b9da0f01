//! Limits how many traces begin in this process per second. Traces begun by callers are not limited.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A token bucket: `per_second` traces a second, with a burst of the same size.
pub(super) struct TraceRateLimiter {
    per_second: f64,
    tokens: Mutex<(f64, Instant)>,
}

impl TraceRateLimiter {
    pub(super) fn new(per_second: u32) -> Self {
        let per_second = f64::from(per_second);
        Self {
            per_second,
            tokens: Mutex::new((per_second, Instant::now())),
        }
    }

    pub(super) fn try_acquire(&self) -> bool {
        self.try_acquire_at(Instant::now())
    }

    fn try_acquire_at(&self, now: Instant) -> bool {
        let mut bucket = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let (tokens, since) = &mut *bucket;
        let passed = now.saturating_duration_since(*since).as_secs_f64();
        *tokens = (*tokens + passed * self.per_second).min(self.per_second);
        *since = now.max(*since);
        if *tokens < 1.0 {
            return false;
        }
        *tokens -= 1.0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn bucket_refills_and_does_not_exceed_its_size() {
        let limiter = TraceRateLimiter::new(3);
        let begun = Instant::now();
        let taken = |at: Duration| {
            (0..10)
                .filter(|_| limiter.try_acquire_at(begun + at))
                .count()
        };
        assert_eq!(taken(Duration::ZERO), 3);
        assert_eq!(taken(Duration::from_millis(400)), 1);
        assert_eq!(taken(Duration::from_secs(100)), 3);
    }

    #[test]
    fn rate_of_zero_allows_nothing() {
        assert!(!TraceRateLimiter::new(0).try_acquire());
    }
}
