//! The epochs of a database's history: what a process keeps in memory about one epoch is not valid in another. Knows no database.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

/// Identifies an epoch of the database's history. A process that meets an unknown server, timeline or cluster opens one: numbers that the
/// database assigned before may be assigned again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EpochId(pub i64);

/// A value of one epoch. It is empty again in the next epoch.
#[derive(Debug)]
pub struct PerEpoch<T>(Mutex<(Option<EpochId>, Arc<T>)>);

impl<T: Default> Default for PerEpoch<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Default> PerEpoch<T> {
    /// Returns the value of this epoch, and forgets that of another. Nothing is kept while no epoch is known.
    pub fn of(&self, epoch: Option<EpochId>) -> Arc<T> {
        if epoch.is_none() {
            return Arc::default();
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.0 != epoch {
            *kept = (epoch, Arc::default());
        }
        Arc::clone(&kept.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_of_another_epoch_is_forgotten() {
        let cache: PerEpoch<Mutex<Vec<u8>>> = PerEpoch::default();
        let (one, two) = (Some(EpochId(1)), Some(EpochId(2)));
        let read = |epoch| cache.of(epoch).lock().unwrap().clone();
        cache.of(one).lock().unwrap().push(1);
        assert_eq!(read(one), [1]);
        assert!(read(two).is_empty());
        assert!(read(one).is_empty(), "it was forgotten");
    }

    #[test]
    fn nothing_is_kept_without_an_epoch() {
        let cache: PerEpoch<Mutex<Vec<u8>>> = PerEpoch::default();
        cache.of(None).lock().unwrap().push(1);
        assert!(cache.of(None).lock().unwrap().is_empty());
    }
}
