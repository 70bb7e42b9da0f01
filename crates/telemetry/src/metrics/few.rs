//! Names that come from outside, kept few: the first that come have series of their own, the others share one. Counts nothing.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// What all names beyond the first ones are called.
pub(super) const OTHER: &str = "other";

/// How many names there are at most.
const MOST: usize = 50;

/// What belongs to each name.
pub(super) struct Few<T>(RwLock<HashMap<Arc<str>, Arc<T>>>);

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<T> Few<T> {
    /// What belongs to this name, or to all others together once there are many.
    pub(super) fn of(&self, name: &str, make: impl FnOnce(&Arc<str>) -> T) -> Arc<T> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(name) {
            return found.clone();
        }
        drop(known);
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let full = known.len() >= MOST && !known.contains_key(name);
        let name: Arc<str> = if full { OTHER.into() } else { name.into() };
        let made = known
            .entry(name.clone())
            .or_insert_with(|| Arc::new(make(&name)));
        made.clone()
    }

    /// What belongs to all names.
    pub(super) fn all(&self) -> Vec<Arc<T>> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_names_have_their_own_and_the_others_share_one() {
        let few = Few::default();
        for round in 0..3 {
            for number in 0..500 {
                let found = few.of(&format!("queue-{number}"), |name| name.clone());
                let own = number < MOST;
                let expected = if own {
                    format!("queue-{number}")
                } else {
                    OTHER.to_owned()
                };
                assert_eq!(**found, *expected, "round {round}");
            }
        }
        assert_eq!(few.all().len(), MOST + 1);
    }
}
