//! The circuit breaker as all services share it: fed by starts and by health, watched by the dispatcher. The rules are the core's.

use crate::outage::Outage;
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
        let outage = self.outage();
        Some(outage.error().to_owned())
    }

    /// Takes note of how a start went. Whether it met trouble that nobody knew of: the others of an outage say nothing new.
    pub(crate) fn started(&self, outcome: &StartOutcome) -> bool {
        match outcome {
            StartOutcome::Started
            | StartOutcome::AlreadyStarted { .. }
            | StartOutcome::Refused { .. } => {
                self.outage().answered();
                self.take(BreakerEvent::Answered, "");
                false
            }
            StartOutcome::Unknown { error } | StartOutcome::Unavailable { error, .. } => {
                let news = self.outage().start_failed();
                self.take(BreakerEvent::Troubled, error);
                news
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
        let now = Instant::now();
        let mut outage = self.outage();
        match (before, after) {
            (BreakerState::Open, BreakerState::Open) => outage.goes_on(error, now),
            (_, BreakerState::Open) => {
                outage.begin(error, now);
                self.prober.notify_one();
            }
            (BreakerState::Open, BreakerState::Recovering { .. }) => {
                outage.answers_again(now);
                self.dispatcher.notify_one();
            }
            (BreakerState::Open | BreakerState::Recovering { .. }, BreakerState::Closed { .. }) => {
                outage.over(now);
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
        self.outage().rest(interval, longest, Instant::now())
    }

    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn outage(&self) -> MutexGuard<'_, Outage> {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner)
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
