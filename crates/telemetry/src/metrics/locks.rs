//! Metrics of named locks and of request leases in this process: held, unavailable, lost. A loss is counted once, by the first call that reports it.

use super::Metrics;
use super::catalog::{FloatGauge, UntypedCounter};
use super::labels::{Kind, LockName};
use leasehold_store::lock::LockToken;
use prometheus_client::metrics::counter::Counter;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The series of one lock.
pub(super) struct LockSeries {
    refused: UntypedCounter,
    lost: Counter,
    held: FloatGauge,
    /// The held token and its expiry.
    current: Mutex<Option<(i64, Instant)>>,
}

impl Metrics {
    fn lock_series(&self, name: &str) -> Arc<LockSeries> {
        self.locks.get_or_create(name, |lock| {
            let lock = LockName { lock: lock.clone() };
            LockSeries {
                refused: self.lock_refused.get_or_create_owned(&lock),
                lost: self.lock_lost.get_or_create_owned(&lock),
                held: self.lock_held.get_or_create_owned(&lock),
                current: Mutex::default(),
            }
        })
    }

    /// Counts request leases that a dispatcher lost.
    pub fn request_leases_lost(&self, claims: u64) {
        let kind = "request";
        self.lost.get_or_create(&Kind { kind }).inc_by(claims);
    }

    /// Counts an attempt to acquire a lock that another process holds.
    pub(crate) fn lock_refused(&self, name: &str) {
        self.lock_series(name).refused.inc_by(1);
    }

    /// Records that the lock is held for this long from now.
    pub(crate) fn set_lock_held(&self, token: &LockToken, at_most_for: Duration) {
        let series = self.lock_series(&token.name);
        let mut current = series
            .current
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *current = Some((token.token, Instant::now() + at_most_for));
    }

    /// Records that the lock was released.
    pub(crate) fn lock_released(&self, token: &LockToken) {
        self.lock_series(&token.name).end(token.token);
    }

    /// Counts the loss of a lock, once for each token.
    pub(crate) fn lock_lost(&self, token: &LockToken) {
        let series = self.lock_series(&token.name);
        if series.end(token.token) {
            series.lost.inc();
        }
    }

    /// Sets the gauge of every lock; one that has expired is not held.
    pub(super) fn refresh_lock_gauges(&self) {
        let now = Instant::now();
        for series in self.locks.all() {
            let current = series
                .current
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let held = current.is_some_and(|(_, until)| now < until);
            series.held.set(if held { 1.0 } else { 0.0 });
        }
    }
}

impl LockSeries {
    /// Ends the hold with this token. Returns whether it was held.
    fn end(&self, token: i64) -> bool {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let held = current.is_some_and(|(held, _)| held == token);
        if held {
            *current = None;
        }
        held
    }
}
