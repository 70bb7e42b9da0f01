//! What calls were admitted with before the store has it: counted from the moment a call is admitted, and apart from what a query of the store has seen.
//! Knows no quota.

use leasehold_core::Usage;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the calls of one workspace or key were ever admitted with in this process. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Admitted(Arc<Mutex<Sums>>);

/// The sums at one moment. They only grow, so the difference between two moments is what was added in between.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    /// Of all calls.
    begun: Usage,
    /// Of the calls that have ended.
    ended: Usage,
}

/// What a call was admitted with. Keep it until the store has it.
#[derive(Debug)]
#[must_use = "what is dropped before the store has it is not counted while it is written"]
pub struct Admission {
    admitted: Admitted,
    usage: Usage,
}

impl Admitted {
    /// Returns the sums now. Take them before a query of the store: it sees all calls that have ended, and may miss those in flight.
    pub(crate) fn sums(&self) -> Sums {
        *self.lock()
    }

    /// Returns what a query that began at `then` may have missed: what was in flight, and what began later.
    pub(crate) fn missed(&self, then: Sums) -> Usage {
        self.lock().begun.minus(then.ended)
    }

    /// Returns what began after `then`.
    pub(crate) fn begun_since(&self, then: Sums) -> Usage {
        self.lock().begun.minus(then.begun)
    }

    /// Whether a call that was admitted has not ended, or a query keeps a clone to compare with.
    pub(crate) fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Admits a call.
    pub(crate) fn begin(&self, usage: Usage) -> Admission {
        let mut sums = self.lock();
        sums.begun = sums.begun.plus(usage);
        Admission {
            admitted: self.clone(),
            usage,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Sums> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Admission {
    /// Returns what the call was admitted with.
    pub(crate) fn usage(&self) -> Usage {
        self.usage
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let mut sums = self.admitted.lock();
        sums.ended = sums.ended.plus(self.usage);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(requests: u64) -> Usage {
        Usage { requests, bytes: 0 }
    }

    #[test]
    fn query_misses_what_was_in_flight_and_what_began_later() {
        let admitted = Admitted::default();
        drop(admitted.begin(usage(1)));
        let in_flight = admitted.begin(usage(20));
        let then = admitted.sums();
        assert_eq!(admitted.missed(then), usage(20));
        assert!(admitted.is_in_use());
        drop(in_flight);
        assert!(!admitted.is_in_use());
        let later = admitted.begin(usage(300));
        assert_eq!(admitted.missed(then), usage(320));
        assert_eq!(admitted.begun_since(then), usage(300));
        assert_eq!(later.usage(), usage(300));
        // An earlier query that is answered later replaces figure and sums together.
        assert_eq!(admitted.missed(Sums::default()), usage(321));
    }
}
