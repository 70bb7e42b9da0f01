//! The circuit breaker in front of the engine, shared by all services: starts and health checks feed it, the dispatcher obeys it. The rules are in
//! `leasehold_core::breaker`.

use crate::outage::EngineOutage;
use leasehold_core::breaker::{BreakerEvent, BreakerSettings, BreakerState, BreakerStateMachine};
use leasehold_engine::StartOutcome;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Decides whether the dispatcher may start executions in the engine, and how many at once.
pub struct CircuitBreaker {
    breaker: Mutex<BreakerStateMachine>,
    outage: Mutex<EngineOutage>,
    dispatcher: Notify,
    prober: Notify,
    /// Whether starts wait until the engine is known to be the recorded one.
    is_held: AtomicBool,
}

impl CircuitBreaker {
    /// Creates a closed breaker: starts pass.
    pub fn new(settings: BreakerSettings) -> Self {
        Self {
            breaker: Mutex::new(BreakerStateMachine::new(settings)),
            outage: Mutex::default(),
            dispatcher: Notify::new(),
            prober: Notify::new(),
            is_held: AtomicBool::new(false),
        }
    }

    /// Returns how many starts may be in flight; 0 while the breaker is open or held.
    pub fn allowance(&self) -> usize {
        if self.is_held.load(Ordering::Acquire) {
            return 0;
        }
        self.breaker().allowance() as usize
    }

    /// Returns the breaker's state.
    pub fn state(&self) -> BreakerState {
        self.breaker().state()
    }

    /// Returns the last error of the engine while the breaker is open, and none otherwise.
    pub fn outage_error(&self) -> Option<String> {
        if self.state() != BreakerState::Open {
            return None;
        }
        let outage = self.outage();
        Some(outage.error().to_owned())
    }

    /// Records the outcome of a start. Returns whether it is the first failure of an outage; only that one is logged as an error.
    pub(crate) fn record_start(&self, outcome: &StartOutcome) -> bool {
        match outcome {
            StartOutcome::Started
            | StartOutcome::AlreadyStarted { .. }
            | StartOutcome::Refused { .. } => {
                self.outage().answered();
                self.apply(BreakerEvent::Answered, "");
                false
            }
            StartOutcome::Unknown { error } | StartOutcome::Unavailable { error, .. } => {
                let is_first = self.outage().start_failed();
                self.apply(BreakerEvent::Failed, error);
                is_first
            }
        }
    }

    /// Holds all starts, whatever the breaker's state.
    pub(crate) fn hold(&self) {
        self.is_held.store(true, Ordering::Release);
    }

    /// Lets starts pass as the breaker's state allows.
    pub(crate) fn release(&self) {
        if self.is_held.swap(false, Ordering::AcqRel) {
            self.dispatcher.notify_one();
        }
    }

    /// Records the result of a health check.
    pub(crate) fn record_health(&self, health: Result<(), String>) {
        match health {
            Ok(()) => self.apply(BreakerEvent::Healthy, ""),
            Err(error) => self.apply(BreakerEvent::Unhealthy, &error),
        }
    }

    /// Waits until more starts are allowed than before.
    pub(crate) async fn capacity_increased(&self) {
        self.dispatcher.notified().await;
    }

    /// Waits until the breaker opens, so that the prober checks the engine's health at once.
    pub(crate) async fn opened(&self) {
        self.prober.notified().await;
    }

    fn apply(&self, event: BreakerEvent, error: &str) {
        let (before, after) = {
            let mut breaker = self.breaker();
            let before = breaker.state();
            breaker.apply(event);
            (before, breaker.state())
        };
        let now = Instant::now();
        let mut outage = self.outage();
        match (before, after) {
            (BreakerState::Open, BreakerState::Open) => outage.ongoing(error, now),
            (_, BreakerState::Open) => {
                outage.begin(error, now);
                self.prober.notify_one();
            }
            (BreakerState::Open, BreakerState::Recovering { .. }) => {
                outage.engine_answers(now);
                self.dispatcher.notify_one();
            }
            (BreakerState::Open | BreakerState::Recovering { .. }, BreakerState::Closed { .. }) => {
                outage.end(now);
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

    /// Returns how long to wait before the next health check. The delay doubles each time the breaker opens again, for an engine that
    /// reports healthy but starts nothing.
    pub(crate) fn probe_delay(&self, interval: Duration, max: Duration) -> Duration {
        self.outage().probe_delay(interval, max, Instant::now())
    }

    fn breaker(&self) -> MutexGuard<'_, BreakerStateMachine> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn outage(&self) -> MutexGuard<'_, EngineOutage> {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn open(breaker: &CircuitBreaker) {
        for _ in 0..5 {
            breaker.record_start(&StartOutcome::Unknown {
                error: "no answer".to_owned(),
            });
        }
    }

    #[test]
    fn probe_delay_doubles_while_engine_is_healthy_but_starts_nothing() {
        let breaker = CircuitBreaker::new(BreakerSettings::default());
        assert_eq!(breaker.probe_delay(HOUR, 8 * HOUR), Duration::ZERO);
        let mut delays = Vec::new();
        for _ in 0..6 {
            open(&breaker);
            assert_eq!(breaker.state(), BreakerState::Open);
            delays.push(
                breaker
                    .probe_delay(HOUR, 8 * HOUR)
                    .as_secs()
                    .div_ceil(3_600),
            );
            breaker.record_health(Ok(()));
        }
        assert_eq!(delays, [1, 2, 4, 8, 8, 8]);
    }

    #[test]
    fn held_breaker_allows_no_start() {
        let breaker = CircuitBreaker::new(BreakerSettings::default());
        let full = breaker.allowance();
        breaker.hold();
        breaker.record_health(Ok(()));
        assert_eq!(breaker.allowance(), 0);
        breaker.release();
        assert_eq!(breaker.allowance(), full);
    }

    #[test]
    fn outage_error_is_returned_only_while_open() {
        let breaker = CircuitBreaker::new(BreakerSettings::default());
        assert_eq!(breaker.outage_error(), None);
        open(&breaker);
        assert_eq!(breaker.outage_error().as_deref(), Some("no answer"));
        breaker.record_health(Ok(()));
        assert_eq!(breaker.outage_error(), None);
    }

    #[test]
    fn probe_delay_resets_after_the_breaker_closes() {
        let breaker = CircuitBreaker::new(BreakerSettings {
            ramp_from: 64,
            ..BreakerSettings::default()
        });
        open(&breaker);
        breaker.record_health(Ok(()));
        open(&breaker);
        assert!(breaker.probe_delay(HOUR, 8 * HOUR) <= HOUR);
    }
}
