//! The circuit breaker as all services share it: fed by starts and by health, watched by the dispatcher. The rules are the core's.

use leasehold_core::breaker::{Breaker, BreakerEvent, BreakerSettings, BreakerState};
use leasehold_engine::StartOutcome;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Whether starts go to the engine, and how many at once.
pub struct Gate {
    breaker: Mutex<Breaker>,
    dispatcher: Notify,
    prober: Notify,
}

impl Gate {
    /// An open way.
    pub fn new(settings: BreakerSettings) -> Self {
        Self {
            breaker: Mutex::new(Breaker::new(settings)),
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
        match (before, after) {
            (BreakerState::Open, BreakerState::Open) => {}
            (_, BreakerState::Open) => {
                tracing::error!(error, "the engine is unavailable; dispatch waits for it");
                self.prober.notify_one();
            }
            (BreakerState::Open, _) => {
                tracing::info!("the engine answers again; dispatch resumes in steps");
                self.dispatcher.notify_one();
            }
            (BreakerState::Recovering { .. }, BreakerState::Closed { .. }) => {
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

    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
