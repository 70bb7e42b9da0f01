//! The circuit breaker in front of the engine, shared by all services: starts and health checks feed it, the dispatcher obeys it. The rules are in
//! `leasehold_core::breaker`.

use crate::outage::EngineOutage;
use crate::start_tracker::{StartFailures, StartTracker};
use leasehold_core::breaker::{
    BreakerEvent, BreakerSettings, BreakerState, BreakerStateMachine, FailedStart,
};
use leasehold_core::{RequestId, WorkspaceId};
use leasehold_engine::StartOutcome;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Decides whether the dispatcher may start executions in the engine, and how many at once.
pub struct CircuitBreaker {
    breaker: Mutex<BreakerStateMachine>,
    outage: Mutex<EngineOutage>,
    starts: Mutex<StartTracker>,
    /// Whether the last health check succeeded.
    healthy: AtomicBool,
    dispatcher: Notify,
    prober: Notify,
    /// Whether starts wait until the engine is known to be the recorded one.
    is_held: AtomicBool,
}

/// A start that is claimed and not yet resolved. The breaker counts it as under way until this is dropped.
pub(crate) struct StartUnderWay {
    breaker: Arc<CircuitBreaker>,
    workspace: WorkspaceId,
}

impl Drop for StartUnderWay {
    fn drop(&mut self) {
        self.breaker.starts().end(self.workspace);
    }
}

impl CircuitBreaker {
    /// Creates a closed breaker: starts pass.
    pub fn new(settings: BreakerSettings) -> Self {
        Self {
            breaker: Mutex::new(BreakerStateMachine::new(settings)),
            outage: Mutex::default(),
            starts: Mutex::default(),
            healthy: AtomicBool::new(true),
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

    /// Returns whether the engine's last health check succeeded; true before the first one.
    pub fn is_engine_healthy(&self) -> bool {
        self.healthy.load(Ordering::Relaxed)
    }

    /// Returns how many requests keep failing to start: three starts or more in a row.
    pub fn failing_requests(&self) -> usize {
        self.starts().keep_failing(Instant::now())
    }

    /// Counts a start of this workspace as under way until the guard is dropped.
    pub(crate) fn begin_start(self: &Arc<Self>, workspace: WorkspaceId) -> StartUnderWay {
        self.starts().begin(workspace);
        StartUnderWay {
            breaker: self.clone(),
            workspace,
        }
    }

    /// Returns how often this request failed to start, without success in between.
    pub(crate) fn start_failures(&self, request: RequestId) -> StartFailures {
        self.starts().failures(request)
    }

    /// Records the outcome of a start. Returns whether it is the first failure since the engine last answered one; only that one is logged as an
    /// error.
    pub(crate) fn record_start(
        &self,
        request: RequestId,
        workspace: WorkspaceId,
        outcome: &StartOutcome,
    ) -> bool {
        match outcome {
            StartOutcome::Started
            | StartOutcome::AlreadyStarted { .. }
            | StartOutcome::Refused { .. } => {
                self.outage().answered();
                self.starts().answered(request);
                self.apply(BreakerEvent::Answered, "");
                false
            }
            StartOutcome::Unknown { error } | StartOutcome::Unavailable { error, .. } => {
                let is_first = self.outage().start_failed();
                let is_only_workspace = {
                    let mut starts = self.starts();
                    starts.failed(request, Instant::now());
                    starts.is_only_workspace(workspace)
                };
                let failed = FailedStart {
                    request,
                    workspace,
                    is_only_workspace,
                };
                self.apply(BreakerEvent::Failed(failed), error);
                if is_first {
                    // A few requests do not open the breaker; a health check tells whether the engine is down.
                    self.prober.notify_one();
                }
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
        self.healthy.store(health.is_ok(), Ordering::Relaxed);
        match health {
            Ok(()) => self.apply(BreakerEvent::Healthy, ""),
            Err(error) => self.apply(BreakerEvent::Unhealthy, &error),
        }
    }

    /// Waits until more starts are allowed than before.
    pub(crate) async fn capacity_increased(&self) {
        self.dispatcher.notified().await;
    }

    /// Waits until the breaker opens or a first start fails, so that the prober checks the engine's health at once.
    pub(crate) async fn health_check_due(&self) {
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
            (BreakerState::Open | BreakerState::Recovering { .. }, BreakerState::Closed) => {
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

    fn starts(&self) -> MutexGuard<'_, StartTracker> {
        self.starts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_store::fresh_id;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn open(breaker: &CircuitBreaker) {
        let workspace = fresh_id();
        for _ in 0..5 {
            let outcome = StartOutcome::Unknown {
                error: "no answer".to_owned(),
            };
            breaker.record_start(fresh_id(), workspace, &outcome);
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
