//! Places for what is under way: so many for each key, so many for all. Knows no route.

use leasehold_core::KeyId;
use leasehold_telemetry::Level;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) struct Places {
    per_key: usize,
    max: usize,
    open: Mutex<Open>,
    gauge: Level,
}

#[derive(Default)]
struct Open {
    all: usize,
    by_key: HashMap<KeyId, usize>,
}

/// A place that is taken; it is free again when this is dropped.
pub(crate) struct KeyPlace {
    places: Arc<Places>,
    key: KeyId,
}

impl Places {
    pub(crate) fn new(per_key: usize, max: usize, gauge: Level) -> Arc<Self> {
        Arc::new(Self {
            per_key,
            max,
            open: Mutex::default(),
            gauge,
        })
    }

    /// One more place for this key, unless it or the server has as many as it may.
    pub(crate) fn enter(self: &Arc<Self>, key: KeyId) -> Option<KeyPlace> {
        let mut open = self.open();
        let of_key = open.by_key.get(&key).copied().unwrap_or_default();
        if of_key >= self.per_key || open.all >= self.max {
            return None;
        }
        open.all += 1;
        open.by_key.insert(key, of_key + 1);
        self.gauge.inc();
        Some(KeyPlace {
            places: Arc::clone(self),
            key,
        })
    }

    fn leave(&self, key: KeyId) {
        let mut open = self.open();
        open.all -= 1;
        match open.by_key.get_mut(&key) {
            Some(of_key) if *of_key > 1 => *of_key -= 1,
            _ => drop(open.by_key.remove(&key)),
        }
        self.gauge.dec();
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for KeyPlace {
    fn drop(&mut self) {
        self.places.leave(self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn key(number: u128) -> KeyId {
        Uuid::from_u128(number).into()
    }

    #[test]
    fn a_key_has_so_many_places_and_gets_one_back_when_a_stream_ends() {
        let places = Places::new(2, 10, Level::default());
        let first = places.enter(key(1));
        let second = places.enter(key(1));
        assert!(first.is_some() && second.is_some());
        assert!(places.enter(key(1)).is_none());
        assert!(places.enter(key(2)).is_some(), "another key has its own");
        drop(first);
        assert!(places.enter(key(1)).is_some());
    }

    #[test]
    fn all_keys_together_have_no_more_than_the_server_and_nothing_is_kept_of_those_that_left() {
        let places = Places::new(2, 3, Level::default());
        let open: Vec<_> = (0..3).map(|number| places.enter(key(number))).collect();
        assert!(open.iter().all(Option::is_some));
        assert!(places.enter(key(9)).is_none());
        assert_eq!(places.gauge.get(), 3.0);
        drop(open);
        assert_eq!(places.gauge.get(), 0.0);
        assert!(places.open().by_key.is_empty());
    }
}
