//! The circuit breaker as a pure state machine: how many starts may be in flight, given the engine's recent answers. Knows no clock and no engine.

use crate::{RequestId, WorkspaceId};
use std::collections::{HashMap, HashSet};

/// Settings of the circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerSettings {
    /// Different requests whose starts must fail, without an answer in between, to open it.
    pub threshold: u32,
    /// Starts that may be in flight right after an outage.
    pub ramp_from: u32,
    /// Starts that may be in flight while it is closed.
    pub full: u32,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self {
            threshold: 5,
            ramp_from: 8,
            full: 64,
        }
    }
}

/// The state of the circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// Starts pass.
    Closed,
    /// The engine is unavailable: nothing is started.
    Open,
    /// The engine answers again; the allowance doubles step by step.
    Recovering {
        /// Starts that may be in flight at this step.
        allowance: u32,
        /// Successful starts at this step.
        good: u32,
    },
}

/// A start that failed because the engine is unavailable, or whose outcome is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedStart {
    /// The request that was started.
    pub request: RequestId,
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// Whether no other workspace has a start under way.
    pub is_only_workspace: bool,
}

/// An event that changes the circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerEvent {
    /// The engine answered a start, possibly with a rejection.
    Answered,
    /// A start failed.
    Failed(FailedStart),
    /// A health check succeeded.
    Healthy,
    /// A health check failed.
    Unhealthy,
}

/// Decides how many starts may be in flight.
///
/// A request whose start always fails shows a fault of that request, and the requests of one workspace may share one. So failed starts open the breaker
/// only if they are of enough different requests, and of two workspaces or of the only one that has starts under way.
#[derive(Clone, Debug)]
pub struct BreakerStateMachine {
    settings: BreakerSettings,
    state: BreakerState,
    /// The requests whose starts have failed since the engine last answered one; at most one more than the threshold.
    failing: HashMap<RequestId, WorkspaceId>,
}

impl BreakerStateMachine {
    /// Creates a closed circuit breaker.
    pub fn new(settings: BreakerSettings) -> Self {
        Self {
            settings,
            state: BreakerState::Closed,
            failing: HashMap::new(),
        }
    }

    /// Returns the state.
    pub fn state(&self) -> BreakerState {
        self.state
    }

    /// Returns how many starts may be in flight.
    pub fn allowance(&self) -> u32 {
        match self.state {
            BreakerState::Closed => self.settings.full,
            BreakerState::Open => 0,
            BreakerState::Recovering { allowance, .. } => allowance,
        }
    }

    /// Applies an event.
    pub fn apply(&mut self, event: BreakerEvent) {
        use BreakerState::{Closed, Open, Recovering};
        match (self.state, event) {
            // A late answer to an old start is no evidence; only a health check closes the breaker.
            (Open, BreakerEvent::Answered | BreakerEvent::Failed(_)) => {}
            (Closed | Recovering { .. }, BreakerEvent::Failed(start)) => self.failed(start),
            (Closed, BreakerEvent::Answered) => self.failing.clear(),
            (Recovering { allowance, good }, BreakerEvent::Answered) => {
                self.failing.clear();
                if good + 1 < allowance {
                    let good = good + 1;
                    self.state = Recovering { allowance, good };
                } else {
                    self.step(allowance.saturating_mul(2));
                }
            }
            (_, BreakerEvent::Unhealthy) => self.open(),
            (Closed, BreakerEvent::Healthy) => {}
            (Open, BreakerEvent::Healthy) => self.step(self.settings.ramp_from.max(1)),
            // Without starts, health checks alone advance the recovery.
            (Recovering { allowance, .. }, BreakerEvent::Healthy) => {
                self.step(allowance.saturating_mul(2));
            }
        }
    }

    fn failed(&mut self, start: FailedStart) {
        let threshold = self.settings.threshold as usize;
        let is_new_workspace = !self.failing.values().any(|of| *of == start.workspace);
        if self.failing.len() < threshold || is_new_workspace {
            self.failing.insert(start.request, start.workspace);
        }
        let workspaces: HashSet<WorkspaceId> = self.failing.values().copied().collect();
        let is_engine = workspaces.len() > 1 || start.is_only_workspace;
        if self.failing.len() >= threshold && is_engine {
            self.open();
        }
    }

    fn open(&mut self) {
        self.failing.clear();
        self.state = BreakerState::Open;
    }

    fn step(&mut self, allowance: u32) {
        self.state = if allowance >= self.settings.full {
            BreakerState::Closed
        } else {
            BreakerState::Recovering { allowance, good: 0 }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::BreakerEvent::{Answered, Failed, Healthy, Unhealthy};
    use super::*;
    use proptest::prelude::*;
    use uuid::Uuid;

    fn start(request: u128, workspace: u128, is_only_workspace: bool) -> BreakerEvent {
        Failed(FailedStart {
            request: RequestId(Uuid::from_u128(request)),
            workspace: WorkspaceId(Uuid::from_u128(workspace)),
            is_only_workspace,
        })
    }

    /// A failed start of a workspace beside which another one has starts under way.
    fn failed(request: u128, workspace: u128) -> BreakerEvent {
        start(request, workspace, false)
    }

    fn after(events: &[BreakerEvent]) -> BreakerStateMachine {
        let mut breaker = BreakerStateMachine::new(BreakerSettings::default());
        for event in events {
            breaker.apply(*event);
        }
        breaker
    }

    #[test]
    fn failures_of_one_request_never_open_the_breaker() {
        assert_eq!(
            after(&[start(1, 1, true); 100]).state(),
            BreakerState::Closed
        );
        let mut recovering = vec![Unhealthy, Healthy];
        recovering.extend([start(1, 1, true); 100]);
        assert_eq!(after(&recovering).allowance(), 8);
    }

    #[test]
    fn five_requests_of_two_workspaces_open_the_breaker_and_an_answer_resets_the_count() {
        let failures = [1, 2, 3, 4, 5].map(|number| failed(number, number % 2));
        assert_eq!(after(&failures[..4]).allowance(), 64);
        assert_eq!(after(&failures).state(), BreakerState::Open);
        let mut between = failures[..4].to_vec();
        between.push(Answered);
        between.extend(&failures[..4]);
        assert_eq!(after(&between).allowance(), 64);
    }

    #[test]
    fn one_workspace_opens_the_breaker_only_if_no_other_has_starts_under_way() {
        let mut failures: Vec<_> = (0..100).map(|number| failed(number, 1)).collect();
        assert_eq!(after(&failures).state(), BreakerState::Closed);
        let mut of_another = failures.clone();
        of_another.push(failed(100, 2));
        assert_eq!(after(&of_another).state(), BreakerState::Open);
        failures.push(start(0, 1, true));
        assert_eq!(after(&failures).state(), BreakerState::Open);
    }

    #[test]
    fn failed_health_check_opens_at_once_and_only_a_successful_one_starts_recovery() {
        assert_eq!(after(&[Unhealthy]).state(), BreakerState::Open);
        assert_eq!(after(&[Unhealthy, Answered, failed(1, 1)]).allowance(), 0);
        assert_eq!(after(&[Unhealthy, Healthy]).allowance(), 8);
    }

    #[test]
    fn allowance_doubles_with_each_successful_step_after_an_outage() {
        let mut breaker = after(&[Unhealthy, Healthy]);
        let mut steps = vec![breaker.allowance()];
        for _ in 0..8 + 16 + 32 {
            breaker.apply(Answered);
            if steps.last() != Some(&breaker.allowance()) {
                steps.push(breaker.allowance());
            }
        }
        assert_eq!(steps, [8, 16, 32, 64]);
        assert_eq!(breaker.state(), BreakerState::Closed);
    }

    #[test]
    fn health_checks_alone_close_the_breaker_in_steps() {
        let allowed = |times: usize| {
            let mut events = vec![Unhealthy];
            events.extend(vec![Healthy; times]);
            after(&events).allowance()
        };
        assert_eq!([1, 2, 3, 4, 5].map(allowed), [8, 16, 32, 64, 64]);
    }

    #[test]
    fn failures_of_enough_requests_open_a_recovering_breaker_again() {
        let mut events = vec![Unhealthy, Healthy];
        events.extend([1, 2, 3, 4].map(|number| failed(number, number % 2)));
        assert_eq!(after(&events).allowance(), 8);
        events.push(failed(5, 1));
        assert_eq!(after(&events).state(), BreakerState::Open);
    }

    fn any_event() -> impl Strategy<Value = BreakerEvent> {
        let failed = (0..20_u128, 0..3_u128, any::<bool>());
        prop_oneof![
            prop::sample::select(vec![Answered, Healthy, Unhealthy]),
            failed.prop_map(|(request, workspace, only)| start(request, workspace, only)),
        ]
    }

    proptest! {
        #[test]
        fn allowance_never_exceeds_full_and_is_positive_after_a_health_check(
            events in prop::collection::vec(any_event(), 0..200)
        ) {
            let mut breaker = after(&events);
            prop_assert!(breaker.allowance() <= 64);
            prop_assert!(breaker.failing.len() <= 5);
            breaker.apply(Healthy);
            prop_assert!(breaker.allowance() > 0);
        }
    }
}
