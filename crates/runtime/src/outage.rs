//! Logs an outage of the engine: when it begins, once a minute while it lasts, and when it ends. Decides nothing.

use std::time::{Duration, Instant};

const REMIND_EVERY: Duration = Duration::from_secs(60);

/// An outage of the engine, from its first failed start until the breaker closes.
#[derive(Default)]
pub(crate) struct EngineOutage {
    /// How often the breaker opened in this outage.
    opened: u32,
    since: Option<Instant>,
    opened_at: Option<Instant>,
    logged_at: Option<Instant>,
    /// Failed starts since the engine last answered one.
    failed: u64,
    error: String,
}

impl EngineOutage {
    /// Counts a failed start. Returns whether it is the first since the engine last answered one.
    pub(crate) fn start_failed(&mut self) -> bool {
        self.failed = self.failed.saturating_add(1);
        self.failed == 1
    }

    /// Resets the count of failed starts, unless an outage is under way.
    pub(crate) fn answered(&mut self) {
        if self.since.is_none() {
            self.failed = 0;
        }
    }

    /// Records that the breaker opened.
    pub(crate) fn begin(&mut self, error: &str, now: Instant) {
        error.clone_into(&mut self.error);
        self.opened = self.opened.saturating_add(1);
        self.opened_at = Some(now);
        if self.since.is_none() {
            self.since = Some(now);
            self.logged_at = Some(now);
            tracing::error!(
                error,
                failed = self.failed,
                "engine unavailable; dispatch paused"
            );
        } else {
            tracing::debug!(error, "engine unavailable again");
            self.remind(now);
        }
    }

    /// Records another error while the breaker is open.
    pub(crate) fn ongoing(&mut self, error: &str, now: Instant) {
        if !error.is_empty() {
            error.clone_into(&mut self.error);
        }
        self.remind(now);
    }

    fn remind(&mut self, now: Instant) {
        if self.logged_at.is_some_and(|at| now - at >= REMIND_EVERY) {
            self.logged_at = Some(now);
            tracing::error!(
                error = self.error,
                failed = self.failed,
                times = self.opened,
                seconds = self.seconds(now),
                "engine still unavailable"
            );
        }
    }

    /// Records that the engine answers again.
    pub(crate) fn engine_answers(&self, now: Instant) {
        if self.opened <= 1 {
            tracing::info!(
                seconds = self.seconds(now),
                "engine answers again; dispatch resumes in steps"
            );
        } else {
            tracing::debug!("engine answers again");
        }
    }

    /// Ends the outage and resets all counts.
    pub(crate) fn end(&mut self, now: Instant) {
        tracing::info!(
            seconds = self.seconds(now),
            failed = self.failed,
            "engine recovered; dispatch runs at full rate"
        );
        *self = Self::default();
    }

    pub(crate) fn error(&self) -> &str {
        &self.error
    }

    /// Returns the time left until the next health check; it doubles each time the breaker opens again.
    pub(crate) fn probe_delay(&self, interval: Duration, max: Duration, now: Instant) -> Duration {
        let Some(opened_at) = self.opened_at else {
            return Duration::ZERO;
        };
        let doubled = interval.saturating_mul(1 << self.opened.saturating_sub(1).min(16));
        doubled.min(max).saturating_sub(now - opened_at)
    }

    fn seconds(&self, now: Instant) -> u64 {
        self.since.map_or(0, |since| (now - since).as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_testkit::logs;
    use tracing::Level;

    #[test]
    fn outage_is_logged_at_its_start_once_a_minute_and_at_its_end() {
        logs::capture();
        let began = Instant::now();
        let mut outage = EngineOutage::default();
        assert!(outage.start_failed());
        assert!(!outage.start_failed());
        outage.begin("no answer", began);
        for second in 1..=150 {
            outage.ongoing("still no answer", began + Duration::from_secs(second));
        }
        logs::assert_once(Level::ERROR, &["dispatch paused", "error=no answer"]);
        assert_eq!(logs::count(Level::ERROR, &["engine still unavailable"]), 2);
        let expected = [
            "error=still no answer",
            "failed=2",
            "times=1",
            "seconds=120",
        ];
        logs::assert_once(Level::ERROR, &expected);
        outage.engine_answers(began + Duration::from_secs(151));
        outage.end(began + Duration::from_secs(160));
        logs::assert_once(Level::INFO, &["answers again", "seconds=151"]);
        logs::assert_once(
            Level::INFO,
            &["engine recovered", "seconds=160", "failed=2"],
        );
        assert!(outage.start_failed(), "the next outage is logged again");
    }

    #[test]
    fn an_answer_between_failures_resets_the_count() {
        let mut outage = EngineOutage::default();
        assert!(outage.start_failed());
        outage.answered();
        assert!(outage.start_failed());
    }
}
