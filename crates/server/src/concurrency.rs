//! A concurrency limiter: a maximum for each key and a maximum for all keys. Knows no route.

use leasehold_core::KeyId;
use leasehold_telemetry::FloatGauge;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) struct ConcurrencyLimiter {
    per_key: usize,
    max: usize,
    in_use: Mutex<PermitsInUse>,
    gauge: FloatGauge,
}

#[derive(Default)]
struct PermitsInUse {
    all: usize,
    by_key: HashMap<KeyId, usize>,
}

/// A permit of a [`ConcurrencyLimiter`], released on drop.
pub(crate) struct ConcurrencyPermit {
    limiter: Arc<ConcurrencyLimiter>,
    key: KeyId,
}

impl ConcurrencyLimiter {
    pub(crate) fn new(per_key: usize, max: usize, gauge: FloatGauge) -> Arc<Self> {
        Arc::new(Self {
            per_key,
            max,
            in_use: Mutex::default(),
            gauge,
        })
    }

    /// Acquires a permit for this key, unless the key or the server is at its limit.
    pub(crate) fn acquire(self: &Arc<Self>, key: KeyId) -> Option<ConcurrencyPermit> {
        let mut in_use = self.in_use();
        let of_key = in_use.by_key.get(&key).copied().unwrap_or_default();
        if of_key >= self.per_key || in_use.all >= self.max {
            return None;
        }
        in_use.all += 1;
        in_use.by_key.insert(key, of_key + 1);
        self.gauge.inc();
        Some(ConcurrencyPermit {
            limiter: Arc::clone(self),
            key,
        })
    }

    fn release(&self, key: KeyId) {
        let mut in_use = self.in_use();
        in_use.all -= 1;
        match in_use.by_key.get_mut(&key) {
            Some(of_key) if *of_key > 1 => *of_key -= 1,
            _ => drop(in_use.by_key.remove(&key)),
        }
        self.gauge.dec();
    }

    fn in_use(&self) -> MutexGuard<'_, PermitsInUse> {
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConcurrencyPermit {
    fn drop(&mut self) {
        self.limiter.release(self.key);
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
    fn key_at_its_limit_gets_a_permit_when_one_is_released() {
        let limiter = ConcurrencyLimiter::new(2, 10, FloatGauge::default());
        let first = limiter.acquire(key(1));
        let second = limiter.acquire(key(1));
        assert!(first.is_some() && second.is_some());
        assert!(limiter.acquire(key(1)).is_none());
        assert!(
            limiter.acquire(key(2)).is_some(),
            "another key has its own limit"
        );
        drop(first);
        assert!(limiter.acquire(key(1)).is_some());
    }

    #[test]
    fn all_keys_share_the_total_limit_and_released_keys_are_removed() {
        let limiter = ConcurrencyLimiter::new(2, 3, FloatGauge::default());
        let open: Vec<_> = (0..3).map(|number| limiter.acquire(key(number))).collect();
        assert!(open.iter().all(Option::is_some));
        assert!(limiter.acquire(key(9)).is_none());
        assert_eq!(limiter.gauge.get(), 3.0);
        drop(open);
        assert_eq!(limiter.gauge.get(), 0.0);
        assert!(limiter.in_use().by_key.is_empty());
    }
}
