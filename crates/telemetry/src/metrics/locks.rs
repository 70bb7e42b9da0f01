//! Named locks, and claims, as this process sees them: held until when, refused, lost. A loss is counted once, whoever tells of it first.

use super::Metrics;
use super::book::{Level, Rising};
use super::labels::{Kind, LockName};
use leasehold_store::lock::LockToken;
use prometheus_client::metrics::counter::Counter;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What is counted of one lock.
pub(super) struct LockSeries {
    refused: Rising,
    lost: Counter,
    held: Level,
    /// The token that is held, and until when it can be believed.
    holds: Mutex<Option<(i64, Instant)>>,
}

impl Metrics {
    fn lock_series(&self, name: &str) -> Arc<LockSeries> {
        self.locks.of(name, |lock| {
            let lock = LockName { lock: lock.clone() };
            LockSeries {
                refused: self.lock_refused.get_or_create_owned(&lock),
                lost: self.lock_lost.get_or_create_owned(&lock),
                held: self.lock_held.get_or_create_owned(&lock),
                holds: Mutex::default(),
            }
        })
    }

    /// A dispatcher found that it has so many of its claims no more.
    pub fn request_leases_lost(&self, claims: u64) {
        let kind = "request";
        self.lost.get_or_create(&Kind { kind }).inc_by(claims);
    }

    /// Somebody else has it.
    pub(crate) fn lock_refused(&self, name: &str) {
        self.lock_series(name).refused.inc_by(1);
    }

    /// It is held for so long from now on.
    pub(crate) fn lock_kept(&self, token: &LockToken, at_most_for: Duration) {
        let series = self.lock_series(&token.name);
        let mut holds = series.holds.lock().unwrap_or_else(PoisonError::into_inner);
        *holds = Some((token.token, Instant::now() + at_most_for));
    }

    /// It was given back.
    pub(crate) fn lock_given_back(&self, token: &LockToken) {
        self.lock_series(&token.name).end(token.token);
    }

    /// It is not held any more, though it was not given back.
    pub(crate) fn lock_lost(&self, token: &LockToken) {
        let series = self.lock_series(&token.name);
        if series.end(token.token) {
            series.lost.inc();
        }
    }

    /// A lock whose time has passed unheard of is not held.
    pub(super) fn look_at_locks(&self) {
        let now = Instant::now();
        for series in self.locks.all() {
            let holds = series.holds.lock().unwrap_or_else(PoisonError::into_inner);
            let held = holds.is_some_and(|(_, until)| now < until);
            series.held.set(if held { 1.0 } else { 0.0 });
        }
    }
}

impl LockSeries {
    /// Whether it was held with this token until now.
    fn end(&self, token: i64) -> bool {
        let mut holds = self.holds.lock().unwrap_or_else(PoisonError::into_inner);
        let held = holds.is_some_and(|(held, _)| held == token);
        if held {
            *holds = None;
        }
        held
    }
}
