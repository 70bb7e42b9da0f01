//! A bounded set of the job claims that ended last, to tell a lost lease from one that its holder has ended. Knows no metric.

use leasehold_core::job::JobRef;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many claims a generation holds; the set remembers at least as many, and at most twice as many.
const GENERATION_MAX: usize = 16_384;

/// The last claims that were added, in two generations: when the newer one is full, it replaces the older one.
#[derive(Default)]
pub(super) struct RecentClaims(Mutex<Generations>);

#[derive(Default)]
struct Generations {
    newer: HashSet<JobRef>,
    older: HashSet<JobRef>,
}

impl Generations {
    /// Adds a claim. Returns whether it is new.
    fn insert(&mut self, claim: JobRef) -> bool {
        if self.older.contains(&claim) {
            return false;
        }
        if self.newer.len() >= GENERATION_MAX {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(claim)
    }
}

impl RecentClaims {
    fn lock(&self) -> MutexGuard<'_, Generations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds claims. Returns how many of them are new.
    pub(super) fn insert(&self, claims: impl IntoIterator<Item = JobRef>) -> usize {
        let mut generations = self.lock();
        let claims = claims.into_iter();
        claims.filter(|claim| generations.insert(*claim)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_core::JobId;

    fn claims(numbers: std::ops::Range<i64>) -> impl Iterator<Item = JobRef> {
        numbers.map(|number| JobRef {
            job: JobId(number),
            token: 1,
        })
    }

    #[test]
    fn claim_is_new_once_while_it_is_remembered() {
        let recent = RecentClaims::default();
        assert_eq!(recent.insert(claims(0..3)), 3);
        assert_eq!(recent.insert(claims(1..4)), 1);
        let most = i64::try_from(GENERATION_MAX).unwrap();
        recent.insert(claims(4..most + 4));
        assert_eq!(recent.insert(claims(0..4)), 0, "still remembered");
        recent.insert(claims(10 * most..12 * most));
        let generations = recent.lock();
        assert!(generations.newer.len() + generations.older.len() <= 2 * GENERATION_MAX);
        drop(generations);
        assert_eq!(recent.insert(claims(0..4)), 4, "forgotten");
    }
}
