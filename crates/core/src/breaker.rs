//! The circuit breaker as a pure state machine: how many starts may be under way, given how the engine has behaved. Knows no clock and no engine.

/// How the breaker behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerSettings {
    /// Troubled starts in a row that open it.
    pub threshold: u32,
    /// How many starts may be under way when the engine has just come back.
    pub ramp_from: u32,
    /// How many may be under way when all is well.
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

/// Where the breaker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// All is well.
    Closed {
        /// Troubled starts since the last good one.
        troubles: u32,
    },
    /// The engine is in trouble: nothing is started.
    Open,
    /// The engine answers again; its load grows in steps.
    Recovering {
        /// How many starts may be under way now.
        allowance: u32,
        /// Good starts at this step.
        good: u32,
    },
}

/// What happened that concerns the breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerEvent {
    /// The engine gave a start a definite answer, even a refusal.
    Answered,
    /// A start found the engine in trouble.
    Troubled,
    /// Its health was asked for and was good.
    Healthy,
    /// Its health was asked for and was not good.
    Unhealthy,
}

/// Decides how many starts may be under way.
#[derive(Clone, Debug)]
pub struct Breaker {
    settings: BreakerSettings,
    state: BreakerState,
}

impl Breaker {
    /// A closed breaker.
    pub fn new(settings: BreakerSettings) -> Self {
        Self {
            settings,
            state: BreakerState::Closed { troubles: 0 },
        }
    }

    /// Where it is.
    pub fn state(&self) -> BreakerState {
        self.state
    }

    /// How many starts may be under way.
    pub fn allowance(&self) -> u32 {
        match self.state {
            BreakerState::Closed { .. } => self.settings.full,
            BreakerState::Open => 0,
            BreakerState::Recovering { allowance, .. } => allowance,
        }
    }

    /// Takes note of what happened.
    pub fn take(&mut self, event: BreakerEvent) {
        use BreakerEvent::{Answered, Healthy, Troubled, Unhealthy};
        use BreakerState::{Closed, Open, Recovering};
        self.state = match (self.state, event) {
            (Closed { .. }, Answered) => Closed { troubles: 0 },
            (Closed { troubles }, Troubled) if troubles + 1 < self.settings.threshold => Closed {
                troubles: troubles + 1,
            },
            (Closed { .. }, Troubled | Unhealthy) => Open,
            (Closed { troubles }, Healthy) => Closed { troubles },
            (Open, Healthy) => self.step(self.settings.ramp_from.max(1)),
            // A late answer to an old start says little; its health decides.
            (Open, Answered | Troubled | Unhealthy) => Open,
            (Recovering { allowance, good }, Answered) if good + 1 < allowance => Recovering {
                allowance,
                good: good + 1,
            },
            (Recovering { allowance, .. }, Answered) => self.step(allowance.saturating_mul(2)),
            (Recovering { .. }, Troubled | Unhealthy) => Open,
            // Where nothing is to be started, its health alone has to do.
            (Recovering { allowance, .. }, Healthy) => self.step(allowance.saturating_mul(2)),
        };
    }

    fn step(&self, allowance: u32) -> BreakerState {
        if allowance >= self.settings.full {
            BreakerState::Closed { troubles: 0 }
        } else {
            BreakerState::Recovering { allowance, good: 0 }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::BreakerEvent::{Answered, Healthy, Troubled, Unhealthy};
    use super::*;
    use proptest::prelude::*;

    fn after(events: &[BreakerEvent]) -> Breaker {
        let mut breaker = Breaker::new(BreakerSettings::default());
        for event in events {
            breaker.take(*event);
        }
        breaker
    }

    #[test]
    fn troubles_in_a_row_open_it_and_one_answer_between_them_does_not() {
        assert_eq!(after(&[Troubled; 4]).allowance(), 64);
        assert_eq!(after(&[Troubled; 5]).state(), BreakerState::Open);
        let mut between = vec![Troubled; 4];
        between.push(Answered);
        between.extend([Troubled; 4]);
        assert_eq!(after(&between).allowance(), 64);
    }

    #[test]
    fn bad_health_opens_it_at_once_and_only_good_health_lets_it_recover() {
        assert_eq!(after(&[Unhealthy]).state(), BreakerState::Open);
        assert_eq!(after(&[Unhealthy, Answered, Troubled]).allowance(), 0);
        assert_eq!(after(&[Unhealthy, Healthy]).allowance(), 8);
    }

    #[test]
    fn after_an_outage_the_load_doubles_with_each_step_that_went_well() {
        let mut breaker = after(&[Unhealthy, Healthy]);
        let mut steps = vec![breaker.allowance()];
        for _ in 0..8 + 16 + 32 {
            breaker.take(Answered);
            if steps.last() != Some(&breaker.allowance()) {
                steps.push(breaker.allowance());
            }
        }
        assert_eq!(steps, [8, 16, 32, 64]);
        assert_eq!(breaker.state(), BreakerState::Closed { troubles: 0 });
    }

    #[test]
    fn where_nothing_is_started_good_health_alone_closes_it_in_steps() {
        let allowed = |times: usize| {
            let mut events = vec![Unhealthy];
            events.extend(vec![Healthy; times]);
            after(&events).allowance()
        };
        assert_eq!([1, 2, 3, 4, 5].map(allowed), [8, 16, 32, 64, 64]);
    }

    #[test]
    fn one_trouble_while_it_recovers_opens_it_again() {
        assert_eq!(
            after(&[Unhealthy, Healthy, Answered, Troubled]).state(),
            BreakerState::Open
        );
    }

    proptest! {
        #[test]
        fn it_never_allows_more_than_full_and_never_stays_open_when_healthy(
            events in prop::collection::vec(prop::sample::select(vec![Answered, Troubled, Healthy, Unhealthy]), 0..200)
        ) {
            let mut breaker = after(&events);
            prop_assert!(breaker.allowance() <= 64);
            breaker.take(Healthy);
            prop_assert!(breaker.allowance() > 0);
        }
    }
}
