//! What is said of the engine's trouble: when it begins, once a minute while it lasts, and when it is over. Decides nothing.

use std::time::{Duration, Instant};

const REMIND_EVERY: Duration = Duration::from_secs(60);

/// The trouble the engine is in, from when it began until it is over.
#[derive(Default)]
pub(crate) struct Outage {
    /// How often the way was shut since all was well.
    shut: u32,
    since: Option<Instant>,
    shut_at: Option<Instant>,
    said_at: Option<Instant>,
    /// Starts that met trouble since the engine last answered one.
    failed: u64,
    error: String,
}

impl Outage {
    /// Takes note of a start that met trouble. Whether it is the first since the engine answered one: the others of an outage say nothing new.
    pub(crate) fn start_failed(&mut self) -> bool {
        self.failed = self.failed.saturating_add(1);
        self.failed == 1
    }

    /// Takes note of an answer while no way was shut.
    pub(crate) fn answered(&mut self) {
        if self.since.is_none() {
            self.failed = 0;
        }
    }

    /// The way was shut.
    pub(crate) fn begin(&mut self, error: &str, now: Instant) {
        error.clone_into(&mut self.error);
        self.shut = self.shut.saturating_add(1);
        self.shut_at = Some(now);
        if self.since.is_none() {
            self.since = Some(now);
            self.said_at = Some(now);
            tracing::error!(
                error,
                failed = self.failed,
                "the engine is unavailable; nothing is dispatched until it is back"
            );
        } else {
            tracing::debug!(error, "the engine is unavailable again");
            self.remind(now);
        }
    }

    /// It is as it was.
    pub(crate) fn goes_on(&mut self, error: &str, now: Instant) {
        if !error.is_empty() {
            error.clone_into(&mut self.error);
        }
        self.remind(now);
    }

    fn remind(&mut self, now: Instant) {
        if self.said_at.is_some_and(|at| now - at >= REMIND_EVERY) {
            self.said_at = Some(now);
            tracing::error!(
                error = self.error,
                failed = self.failed,
                times = self.shut,
                seconds = self.seconds(now),
                "the engine is still unavailable"
            );
        }
    }

    pub(crate) fn answers_again(&self, now: Instant) {
        if self.shut <= 1 {
            tracing::info!(
                seconds = self.seconds(now),
                "the engine answers again; dispatch resumes in steps"
            );
        } else {
            tracing::debug!("the engine answers again");
        }
    }

    /// All is well, and the next trouble begins anew.
    pub(crate) fn over(&mut self, now: Instant) {
        tracing::info!(
            seconds = self.seconds(now),
            failed = self.failed,
            "the engine is well; dispatch runs at full rate"
        );
        *self = Self::default();
    }

    pub(crate) fn error(&self) -> &str {
        &self.error
    }

    /// How long the way need not be tried yet; longer each time it was shut again.
    pub(crate) fn rest(&self, interval: Duration, longest: Duration, now: Instant) -> Duration {
        let Some(shut_at) = self.shut_at else {
            return Duration::ZERO;
        };
        let doubled = interval.saturating_mul(1 << self.shut.saturating_sub(1).min(16));
        doubled.min(longest).saturating_sub(now - shut_at)
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
    fn an_outage_is_said_once_reminded_once_a_minute_and_its_end_says_how_long_it_took() {
        logs::keep();
        let began = Instant::now();
        let mut outage = Outage::default();
        assert!(outage.start_failed());
        assert!(!outage.start_failed());
        outage.begin("no answer", began);
        for second in 1..=150 {
            outage.goes_on("still no answer", began + Duration::from_secs(second));
        }
        logs::assert_once(Level::ERROR, &["nothing is dispatched", "error=no answer"]);
        assert_eq!(
            logs::count(Level::ERROR, &["the engine is still unavailable"]),
            2
        );
        let said = [
            "error=still no answer",
            "failed=2",
            "times=1",
            "seconds=120",
        ];
        logs::assert_once(Level::ERROR, &said);
        outage.answers_again(began + Duration::from_secs(151));
        outage.over(began + Duration::from_secs(160));
        logs::assert_once(Level::INFO, &["answers again", "seconds=151"]);
        logs::assert_once(Level::INFO, &["is well", "seconds=160", "failed=2"]);
        assert!(outage.start_failed(), "the next one begins anew");
    }

    #[test]
    fn an_answer_between_troubles_makes_the_next_one_news_again() {
        let mut outage = Outage::default();
        assert!(outage.start_failed());
        outage.answered();
        assert!(outage.start_failed());
    }
}
