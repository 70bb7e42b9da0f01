//! Exponential backoff with jitter, and whether a rejected start is retried. Pure: the caller supplies the randomness.

use std::time::Duration;

/// The wait between attempts and how it grows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// Wait after the first failure.
    pub base: Duration,
    /// The factor by which each further failure multiplies the wait.
    pub factor: f64,
    /// The longest wait.
    pub max: Duration,
    /// The random part of the wait, from 0 (none) to 1 (all of it).
    pub jitter: f64,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            base: Duration::from_secs(1),
            factor: 2.0,
            max: Duration::from_secs(300),
            jitter: 0.2,
        }
    }
}

impl Backoff {
    /// Returns the wait after `failures` consecutive failures (1 is the first); `unit` is a random number from 0 to 1.
    ///
    /// The result lies in `[wait * (1 - jitter), wait]`, where `wait` is the exponential wait capped at `max`.
    pub fn delay(&self, failures: u32, unit: f64) -> Duration {
        let power = failures.saturating_sub(1).min(1_000) as i32;
        let wait = (self.base.as_secs_f64() * self.factor.max(1.0).powi(power))
            .min(self.max.as_secs_f64());
        let random = self.jitter.clamp(0.0, 1.0) * unit.clamp(0.0, 1.0);
        Duration::from_secs_f64(wait * (1.0 - random))
    }
}

/// Whether a request is retried after the engine rejected its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryDecision {
    /// The start is retried.
    Retry,
    /// `max_attempts` is reached.
    Exhausted,
}

/// Decides whether a request with `dispatch_failures` rejected starts, the last included, is retried.
pub const fn decide_retry(dispatch_failures: u32, max_attempts: u32) -> RetryDecision {
    if dispatch_failures >= max_attempts {
        RetryDecision::Exhausted
    } else {
        RetryDecision::Retry
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn waits_double_up_to_the_maximum() {
        let backoff = Backoff {
            jitter: 0.0,
            ..Backoff::default()
        };
        let waits: Vec<u64> = (1..=10).map(|n| backoff.delay(n, 0.5).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]);
    }

    #[test]
    fn the_third_of_three_rejections_exhausts() {
        assert_eq!(decide_retry(2, 3), RetryDecision::Retry);
        assert_eq!(decide_retry(3, 3), RetryDecision::Exhausted);
        assert_eq!(decide_retry(1, 0), RetryDecision::Exhausted);
    }

    proptest! {
        #[test]
        fn a_wait_is_bounded_and_never_panics(failures: u32, unit: f64, jitter in 0.0..=1.0f64) {
            let backoff = Backoff { jitter, ..Backoff::default() };
            let wait = backoff.delay(failures, unit);
            prop_assert!(wait <= backoff.max);
            prop_assert!(wait >= backoff.base.mul_f64((1.0 - jitter) * 0.999));
        }

        #[test]
        fn more_failures_never_wait_less(failures in 1u32..50, unit in 0.0..1.0f64) {
            let backoff = Backoff::default();
            prop_assert!(backoff.delay(failures + 1, unit) >= backoff.delay(failures, unit));
        }
    }
}
