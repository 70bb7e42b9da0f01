//! How many traces may begin here in a second. Those that begin elsewhere are decided on elsewhere.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// So many a second, and as many at once.
pub(super) struct Allowance {
    per_second: f64,
    left: Mutex<(f64, Instant)>,
}

impl Allowance {
    pub(super) fn new(per_second: u32) -> Self {
        let per_second = f64::from(per_second);
        Self {
            per_second,
            left: Mutex::new((per_second, Instant::now())),
        }
    }

    pub(super) fn take(&self) -> bool {
        self.take_at(Instant::now())
    }

    fn take_at(&self, now: Instant) -> bool {
        let mut held = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let (left, since) = &mut *held;
        let passed = now.saturating_duration_since(*since).as_secs_f64();
        *left = (*left + passed * self.per_second).min(self.per_second);
        *since = now.max(*since);
        if *left < 1.0 {
            return false;
        }
        *left -= 1.0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_second_gives_so_many_and_saves_no_more() {
        let allowance = Allowance::new(3);
        let begun = Instant::now();
        let taken = |at: Duration| (0..10).filter(|_| allowance.take_at(begun + at)).count();
        assert_eq!(taken(Duration::ZERO), 3);
        assert_eq!(taken(Duration::from_millis(400)), 1);
        assert_eq!(taken(Duration::from_secs(100)), 3);
    }

    #[test]
    fn none_is_none() {
        assert!(!Allowance::new(0).take());
    }
}
