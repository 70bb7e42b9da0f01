//! The meter of a validation: counts steps against a budget and looks at the clock now and then.

use leasehold_core::limits::VALIDATION_MAX_DEPTH;
use std::time::Instant;
use thiserror::Error;

/// Steps between two looks at the clock: about a tenth of a millisecond.
const CLOCK_INTERVAL: u64 = 10_000;

/// How much a validation may do.
#[derive(Debug, Clone, Copy)]
pub struct ValidationLimits {
    /// Steps: a keyword, a property, an item, a byte of a text that a pattern reads, 16 bytes that are compared or hashed.
    pub steps: u64,
    /// When the validation must stop.
    pub deadline: Option<Instant>,
}

/// The limit that stopped a validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ValidationLimit {
    /// The steps are used up.
    #[error("validation took more than {0} steps; simplify the schema or send smaller values")]
    Steps(u64),
    /// The deadline has passed.
    #[error("validation did not end before its deadline; simplify the schema or send fewer values")]
    Deadline,
    /// Schemas that apply within each other nest too deep.
    #[error(
        "validation nested deeper than {VALIDATION_MAX_DEPTH} schemas; use fewer `$ref`s for each level of the value"
    )]
    Depth,
}

/// Counts the steps of one validation.
#[derive(Debug)]
pub(crate) struct Meter {
    used: u64,
    /// The count at which to compare with the budget and the clock.
    check_at: u64,
    limits: ValidationLimits,
}

impl Meter {
    pub(crate) fn new(limits: ValidationLimits) -> Self {
        Self {
            used: 0,
            check_at: 0,
            limits,
        }
    }

    /// A meter for work that is bounded otherwise.
    pub(crate) fn unlimited() -> Self {
        Self::new(ValidationLimits {
            steps: u64::MAX,
            deadline: None,
        })
    }

    /// Counts steps before they are done.
    pub(crate) fn step(&mut self, steps: u64) -> Result<(), ValidationLimit> {
        self.used = self.used.saturating_add(steps);
        if self.used < self.check_at {
            return Ok(());
        }
        self.check()
    }

    /// Counts the steps that comparing or copying so many bytes takes.
    pub(crate) fn step_bytes(&mut self, bytes: usize) -> Result<(), ValidationLimit> {
        self.step(1 + bytes as u64 / 16)
    }

    #[cold]
    fn check(&mut self) -> Result<(), ValidationLimit> {
        if self.used > self.limits.steps {
            return Err(ValidationLimit::Steps(self.limits.steps));
        }
        if self
            .limits
            .deadline
            .is_some_and(|end| Instant::now() >= end)
        {
            return Err(ValidationLimit::Deadline);
        }
        let next = self.used.saturating_add(CLOCK_INTERVAL);
        self.check_at = next.min(self.limits.steps.saturating_add(1));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meter_stops_exactly_after_the_budget() {
        let mut meter = Meter::new(ValidationLimits {
            steps: 25_000,
            deadline: None,
        });
        for _ in 0..25_000 {
            meter.step(1).unwrap();
        }
        assert_eq!(meter.step(1), Err(ValidationLimit::Steps(25_000)));
        assert_eq!(meter.step(u64::MAX), Err(ValidationLimit::Steps(25_000)));
    }

    #[test]
    fn meter_stops_after_the_deadline() {
        let mut meter = Meter::new(ValidationLimits {
            steps: u64::MAX,
            deadline: Some(Instant::now()),
        });
        assert_eq!(meter.step(1), Err(ValidationLimit::Deadline));
    }
}
