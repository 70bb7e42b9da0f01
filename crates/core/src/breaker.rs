//! The circuit breaker as a pure state machine: how many starts may be in flight, given the engine's recent answers. Knows no clock and no engine.

/// Settings of the circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerSettings {
    /// Consecutive failures that open it.
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
    /// The engine is healthy.
    Closed {
        /// Consecutive failures.
        failures: u32,
    },
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

/// An event that changes the circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerEvent {
    /// The engine answered a start, possibly with a rejection.
    Answered,
    /// A start failed because the engine is unavailable, or its outcome is unknown.
    Failed,
    /// A health check succeeded.
    Healthy,
    /// A health check failed.
    Unhealthy,
}

/// Decides how many starts may be in flight.
#[derive(Clone, Debug)]
pub struct BreakerStateMachine {
    settings: BreakerSettings,
    state: BreakerState,
}

impl BreakerStateMachine {
    /// Creates a closed circuit breaker.
    pub fn new(settings: BreakerSettings) -> Self {
        Self {
            settings,
            state: BreakerState::Closed { failures: 0 },
        }
    }

    /// Returns the state.
    pub fn state(&self) -> BreakerState {
        self.state
    }

    /// Returns how many starts may be in flight.
    pub fn allowance(&self) -> u32 {
        match self.state {
            BreakerState::Closed { .. } => self.settings.full,
            BreakerState::Open => 0,
            BreakerState::Recovering { allowance, .. } => allowance,
        }
    }

    /// Applies an event.
    pub fn apply(&mut self, event: BreakerEvent) {
        use BreakerEvent::{Answered, Failed, Healthy, Unhealthy};
        use BreakerState::{Closed, Open, Recovering};
        self.state = match (self.state, event) {
            (Closed { .. }, Answered) => Closed { failures: 0 },
            (Closed { failures }, Failed) if failures + 1 < self.settings.threshold => Closed {
                failures: failures + 1,
            },
            (Closed { .. }, Failed | Unhealthy) => Open,
            (Closed { failures }, Healthy) => Closed { failures },
            (Open, Healthy) => self.step(self.settings.ramp_from.max(1)),
            // A late answer to an old start is no evidence; only a health check closes the breaker.
            (Open, Answered | Failed | Unhealthy) => Open,
            (Recovering { allowance, good }, Answered) if good + 1 < allowance => Recovering {
                allowance,
                good: good + 1,
            },
            (Recovering { allowance, .. }, Answered) => self.step(allowance.saturating_mul(2)),
            (Recovering { .. }, Failed | Unhealthy) => Open,
            // Without starts, health checks alone advance the recovery.
            (Recovering { allowance, .. }, Healthy) => self.step(allowance.saturating_mul(2)),
        };
    }

    fn step(&self, allowance: u32) -> BreakerState {
        if allowance >= self.settings.full {
            BreakerState::Closed { failures: 0 }
        } else {
            BreakerState::Recovering { allowance, good: 0 }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::BreakerEvent::{Answered, Failed, Healthy, Unhealthy};
    use super::*;
    use proptest::prelude::*;

    fn after(events: &[BreakerEvent]) -> BreakerStateMachine {
        let mut breaker = BreakerStateMachine::new(BreakerSettings::default());
        for event in events {
            breaker.apply(*event);
        }
        breaker
    }

    #[test]
    fn consecutive_failures_open_the_breaker_and_an_answer_resets_the_count() {
        assert_eq!(after(&[Failed; 4]).allowance(), 64);
        assert_eq!(after(&[Failed; 5]).state(), BreakerState::Open);
        let mut between = vec![Failed; 4];
        between.push(Answered);
        between.extend([Failed; 4]);
        assert_eq!(after(&between).allowance(), 64);
    }

    #[test]
    fn failed_health_check_opens_at_once_and_only_a_successful_one_starts_recovery() {
        assert_eq!(after(&[Unhealthy]).state(), BreakerState::Open);
        assert_eq!(after(&[Unhealthy, Answered, Failed]).allowance(), 0);
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
        assert_eq!(breaker.state(), BreakerState::Closed { failures: 0 });
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
    fn failure_during_recovery_opens_the_breaker_again() {
        assert_eq!(
            after(&[Unhealthy, Healthy, Answered, Failed]).state(),
            BreakerState::Open
        );
    }

    proptest! {
        #[test]
        fn allowance_never_exceeds_full_and_is_positive_after_a_health_check(
            events in prop::collection::vec(prop::sample::select(vec![Answered, Failed, Healthy, Unhealthy]), 0..200)
        ) {
            let mut breaker = after(&events);
            prop_assert!(breaker.allowance() <= 64);
            breaker.apply(Healthy);
            prop_assert!(breaker.allowance() > 0);
        }
    }
}
