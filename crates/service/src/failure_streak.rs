//! Failures in a row: reported when they begin, once a minute while they last, and when they are over; and how long to wait between tries.

use leasehold_core::retry::Backoff;
use std::fmt::Display;
use std::time::Duration;
use tokio::time::Instant;

const REMIND_EVERY: Duration = Duration::from_secs(60);
/// Quick enough that a restarted database is noticed in seconds, slow enough not to hammer it.
const WAITS: Backoff = Backoff {
    base: Duration::from_millis(100),
    factor: 2.0,
    max: Duration::from_secs(3),
    jitter: 0.2,
};

/// The failures in a row of one loop.
#[derive(Debug)]
pub struct FailureStreak {
    service: &'static str,
    action: Option<&'static str>,
    quiet_for: Duration,
    failing: Option<Failing>,
}

#[derive(Debug)]
struct Failing {
    since: Instant,
    last: Instant,
    reported: Instant,
    times: u32,
}

impl FailureStreak {
    /// No failures yet, of the loop with this name: "dispatcher cannot do its work".
    pub fn of(service: &'static str) -> Self {
        Self {
            service,
            action: None,
            quiet_for: Duration::ZERO,
            failing: None,
        }
    }

    /// Reports what it is that fails, as in "worker cannot claim jobs".
    #[must_use]
    pub fn action(mut self, action: &'static str) -> Self {
        self.action = Some(action);
        self
    }

    /// A success ends the streak only if the last failure is this long ago; for loops whose failures and successes alternate.
    #[must_use]
    pub fn over_after(mut self, quiet_for: Duration) -> Self {
        self.quiet_for = quiet_for;
        self
    }

    /// Counts a failure; returns how long to wait before the next try.
    pub fn failed(&mut self, error: &dyn Display) -> Duration {
        let now = Instant::now();
        let service = self.service;
        let action = self.action.unwrap_or("do its work");
        let failing = self.failing.get_or_insert_with(|| {
            tracing::error!(service, %error, "{service} cannot {action}; it keeps trying");
            Failing {
                since: now,
                last: now,
                reported: now,
                times: 0,
            }
        });
        failing.last = now;
        failing.times = failing.times.saturating_add(1);
        if now - failing.reported >= REMIND_EVERY {
            failing.reported = now;
            let seconds = (now - failing.since).as_secs();
            tracing::error!(service, %error, times = failing.times, seconds, "{service} still cannot {action}");
        }
        WAITS.delay(failing.times, fastrand::f64())
    }

    /// Ends the streak, if there is one.
    pub fn succeeded(&mut self) {
        let quiet_for = self.quiet_for;
        let over = |failing: &mut Failing| failing.last.elapsed() >= quiet_for;
        let Some(failing) = self.failing.take_if(over) else {
            return;
        };
        let (service, times) = (self.service, failing.times);
        let seconds = failing.since.elapsed().as_secs();
        match self.action {
            None => tracing::info!(service, times, seconds, "{service} works again"),
            Some(action) => {
                tracing::info!(service, times, seconds, "{service} can {action} again");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn waits_grow_with_the_streak_and_begin_anew_after_it() {
        let mut failures = FailureStreak::of("test");
        let waits: Vec<Duration> = (0..8).map(|_| failures.failed(&"no")).collect();
        assert!(waits[0] <= WAITS.base, "{waits:?}");
        assert!(waits[7] > 20 * WAITS.base, "{waits:?}");
        assert!(waits.iter().all(|wait| *wait <= WAITS.max), "{waits:?}");
        failures.succeeded();
        assert!(failures.failed(&"no") <= WAITS.base);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reminder_comes_once_a_minute() {
        let mut failures = FailureStreak::of("test");
        failures.failed(&"no");
        let begun = Instant::now();
        let mut reminders = 0;
        for _ in 0..150 {
            advance(Duration::from_secs(1)).await;
            failures.failed(&"no");
            let reported = failures.failing.as_ref().map(|failing| failing.reported);
            reminders += u32::from(reported == Some(Instant::now()));
        }
        assert_eq!(begun.elapsed(), Duration::from_secs(150));
        assert_eq!(reminders, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_success_soon_after_a_failure_does_not_end_a_streak_that_waits_for_quiet() {
        let mut failures = FailureStreak::of("test").over_after(Duration::from_secs(30));
        failures.failed(&"no");
        advance(Duration::from_secs(29)).await;
        failures.succeeded();
        assert!(failures.failing.is_some());
        advance(Duration::from_secs(1)).await;
        failures.succeeded();
        assert!(failures.failing.is_none());
    }
}
