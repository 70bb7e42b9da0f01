//! The circuit breaker as all services share it: fed by starts and by health, watched by the dispatcher. The rules are the core's.

use leasehold_core::breaker::{Breaker, BreakerEvent, BreakerSettings, BreakerState};
use leasehold_engine::StartOutcome;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Whether starts go to the engine, and how many at once.
pub struct Gate {
    breaker: Mutex<Breaker>,
    outage: Mutex<Outage>,
    dispatcher: Notify,
    prober: Notify,
}

/// The trouble the engine is in, from when it began until it is over.
#[derive(Default)]
struct Outage {
    /// How often the way was shut since all was well.
    shut: u32,
    shut_at: Option<Instant>,
    said_at: Option<Instant>,
    error: String,
}

const REMIND_EVERY: Duration = Duration::from_secs(60);

impl Gate {
    /// An open way.
    pub fn new(settings: BreakerSettings) -> Self {
        Self {
            breaker: Mutex::new(Breaker::new(settings)),
            outage: Mutex::default(),
            dispatcher: Notify::new(),
            prober: Notify::new(),
        }
    }

    /// How many starts may be under way.
    pub fn allowance(&self) -> usize {
        self.breaker().allowance() as usize
    }

    /// Where the breaker is.
    pub fn state(&self) -> BreakerState {
        self.breaker().state()
    }

    /// What the engine's trouble is; none while starts go to it.
    pub fn trouble(&self) -> Option<String> {
        if self.state() != BreakerState::Open {
            return None;
        }
        let outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        Some(outage.error.clone())
    }

    /// Takes note of how a start went.
    pub(crate) fn started(&self, outcome: &StartOutcome) {
        match outcome {
            StartOutcome::Started
            | StartOutcome::AlreadyStarted { .. }
            | StartOutcome::Refused { .. } => self.take(BreakerEvent::Answered, ""),
            StartOutcome::Unknown { error } | StartOutcome::Unavailable { error, .. } => {
                self.take(BreakerEvent::Troubled, error);
            }
        }
    }

    /// Takes note of the engine's health.
    pub(crate) fn probed(&self, health: Result<(), String>) {
        match health {
            Ok(()) => self.take(BreakerEvent::Healthy, ""),
            Err(error) => self.take(BreakerEvent::Unhealthy, &error),
        }
    }

    /// Returns when more may be started than before.
    pub(crate) async fn widened(&self) {
        self.dispatcher.notified().await;
    }

    /// Returns when the engine's health should be asked for.
    pub(crate) async fn shut(&self) {
        self.prober.notified().await;
    }

    fn take(&self, event: BreakerEvent, error: &str) {
        let (before, after) = {
            let mut breaker = self.breaker();
            let before = breaker.state();
            breaker.take(event);
            (before, breaker.state())
        };
        let mut outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        match (before, after) {
            (BreakerState::Open, BreakerState::Open) => {}
            (_, BreakerState::Open) => {
                outage.begin(error);
                self.prober.notify_one();
            }
            (BreakerState::Open, BreakerState::Recovering { .. }) => {
                outage.answers_again();
                self.dispatcher.notify_one();
            }
            (BreakerState::Open | BreakerState::Recovering { .. }, BreakerState::Closed { .. }) => {
                *outage = Outage::default();
                tracing::info!("the engine is well; dispatch runs at full rate");
                self.dispatcher.notify_one();
            }
            (
                BreakerState::Recovering { allowance: a, .. },
                BreakerState::Recovering { allowance: b, .. },
            ) if a != b => {
                self.dispatcher.notify_one();
            }
            _ => {}
        }
    }

    /// How long its health need not be asked for yet. An engine that says it is well and then does not start anything is
    /// asked less and less often.
    pub(crate) fn rest(&self, interval: Duration, longest: Duration) -> Duration {
        let outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(shut_at) = outage.shut_at else {
            return Duration::ZERO;
        };
        let doubled = interval.saturating_mul(1 << outage.shut.saturating_sub(1).min(16));
        doubled.min(longest).saturating_sub(shut_at.elapsed())
    }

    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outage {
    fn begin(&mut self, error: &str) {
        let now = Instant::now();
        error.clone_into(&mut self.error);
        self.shut = self.shut.saturating_add(1);
        self.shut_at = Some(now);
        match self.said_at {
            None => tracing::error!(
                error,
                "the engine is unavailable; nothing is dispatched until it is back"
            ),
            Some(at) if now - at < REMIND_EVERY => {
                tracing::debug!(error, "the engine is unavailable again");
                return;
            }
            Some(_) => tracing::error!(error, times = self.shut, "the engine is still in trouble"),
        }
        self.said_at = Some(now);
    }

    fn answers_again(&self) {
        if self.shut <= 1 {
            tracing::info!("the engine answers again; dispatch resumes in steps");
        } else {
            tracing::debug!("the engine answers again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn shut(gate: &Gate) {
        for _ in 0..5 {
            gate.started(&StartOutcome::Unknown {
                error: "no answer".to_owned(),
            });
        }
    }

    #[test]
    fn an_engine_that_says_it_is_well_but_starts_nothing_is_asked_less_and_less_often() {
        let gate = Gate::new(BreakerSettings::default());
        assert_eq!(gate.rest(HOUR, 8 * HOUR), Duration::ZERO);
        let mut rests = Vec::new();
        for _ in 0..6 {
            shut(&gate);
            assert_eq!(gate.state(), BreakerState::Open);
            rests.push(gate.rest(HOUR, 8 * HOUR).as_secs().div_ceil(3_600));
            gate.probed(Ok(()));
        }
        assert_eq!(rests, [1, 2, 4, 8, 8, 8]);
    }

    #[test]
    fn the_trouble_is_known_while_it_lasts() {
        let gate = Gate::new(BreakerSettings::default());
        assert_eq!(gate.trouble(), None);
        shut(&gate);
        assert_eq!(gate.trouble().as_deref(), Some("no answer"));
        gate.probed(Ok(()));
        assert_eq!(gate.trouble(), None);
    }

    #[test]
    fn once_all_is_well_the_next_outage_begins_anew() {
        let gate = Gate::new(BreakerSettings {
            ramp_from: 64,
            ..BreakerSettings::default()
        });
        shut(&gate);
        gate.probed(Ok(()));
        shut(&gate);
        assert!(gate.rest(HOUR, 8 * HOUR) <= HOUR);
    }
}
