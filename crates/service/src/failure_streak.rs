//! Consecutive failures of a loop: logged at the first, once a minute while they last, and on recovery; and the backoff between attempts.

use leasehold_core::retry::Backoff;
use std::fmt::Display;
use std::time::Duration;
use tokio::time::Instant;

const REMIND_EVERY: Duration = Duration::from_secs(60);
/// Short enough to notice a restarted database within seconds, long enough not to overload it.
const WAITS: Backoff = Backoff {
    base: Duration::from_millis(100),
    factor: 2.0,
    max: Duration::from_secs(3),
    jitter: 0.2,
};

/// The consecutive failures of one loop.
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
    /// Creates an empty streak for the loop with this name.
    pub fn of(service: &'static str) -> Self {
        Self {
            service,
            action: None,
            quiet_for: Duration::ZERO,
            failing: None,
        }
    }

    /// Sets the action that log messages name, as in "worker failed to claim jobs".
    #[must_use]
    pub fn action(mut self, action: &'static str) -> Self {
        self.action = Some(action);
        self
    }

    /// Sets how long the last failure must be ago for a success to end the streak; for loops whose failures and successes alternate.
    #[must_use]
    pub fn with_quiet_period(mut self, quiet_for: Duration) -> Self {
        self.quiet_for = quiet_for;
        self
    }

    /// Counts a failure and returns how long to wait before the next attempt.
    pub fn failed(&mut self, error: &dyn Display) -> Duration {
        let now = Instant::now();
        let service = self.service;
        let action = self.action.unwrap_or("complete a round");
        let failing = self.failing.get_or_insert_with(|| {
            tracing::error!(service, %error, "{service} failed to {action}; retrying");
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
            tracing::error!(service, %error, times = failing.times, seconds, "{service} still fails to {action}");
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
            None => tracing::info!(service, times, seconds, "{service} recovered"),
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
    async fn waits_grow_with_the_streak_and_reset_after_it() {
        let mut failures = FailureStreak::of("test");
        let waits: Vec<Duration> = (0..8).map(|_| failures.failed(&"no")).collect();
        assert!(waits[0] <= WAITS.base, "{waits:?}");
        assert!(waits[7] > 20 * WAITS.base, "{waits:?}");
        assert!(waits.iter().all(|wait| *wait <= WAITS.max), "{waits:?}");
        failures.succeeded();
        assert!(failures.failed(&"no") <= WAITS.base);
    }

    #[tokio::test(start_paused = true)]
    async fn failure_is_logged_again_once_a_minute() {
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
    async fn success_within_the_quiet_period_does_not_end_the_streak() {
        let mut failures = FailureStreak::of("test").with_quiet_period(Duration::from_secs(30));
        failures.failed(&"no");
        advance(Duration::from_secs(29)).await;
        failures.succeeded();
        assert!(failures.failing.is_some());
        advance(Duration::from_secs(1)).await;
        failures.succeeded();
        assert!(failures.failing.is_none());
    }
}
