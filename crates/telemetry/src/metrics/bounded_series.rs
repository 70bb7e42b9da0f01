//! Bounds the number of series for names given by callers: the first names get their own series, all others share one. Counts nothing.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// The label value shared by all names beyond the first ones.
pub(super) const OTHER: &str = "other";

/// The most names with their own series.
const MAX_NAMES: usize = 50;

/// The series of each name.
pub(super) struct BoundedSeries<T>(RwLock<HashMap<Arc<str>, Arc<T>>>);

impl<T> Default for BoundedSeries<T> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<T> BoundedSeries<T> {
    /// Returns the series of this name, or the shared one once the bound is reached.
    pub(super) fn get_or_create(&self, name: &str, make: impl FnOnce(&Arc<str>) -> T) -> Arc<T> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(name) {
            return found.clone();
        }
        drop(known);
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let full = known.len() >= MAX_NAMES && !known.contains_key(name);
        let name: Arc<str> = if full { OTHER.into() } else { name.into() };
        let made = known
            .entry(name.clone())
            .or_insert_with(|| Arc::new(make(&name)));
        made.clone()
    }

    /// Returns all series.
    pub(super) fn all(&self) -> Vec<Arc<T>> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_the_bound_share_one_series() {
        let series = BoundedSeries::default();
        for round in 0..3 {
            for number in 0..500 {
                let found = series.get_or_create(&format!("queue-{number}"), |name| name.clone());
                let own = number < MAX_NAMES;
                let expected = if own {
                    format!("queue-{number}")
                } else {
                    OTHER.to_owned()
                };
                assert_eq!(**found, *expected, "round {round}");
            }
        }
        assert_eq!(series.all().len(), MAX_NAMES + 1);
    }
}
