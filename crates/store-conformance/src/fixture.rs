//! The fixture that an adapter creates for each case: an empty store with a manual clock. Knows no database.

use leasehold_core::Timestamp;
use leasehold_store::{ManualClock, Store};
use std::any::Any;
use std::sync::Arc;

/// 2026-01-01 00:00:00 UTC: an arbitrary start time, the same in every run.
const START_SECONDS: i64 = 1_767_225_600;

/// An empty, migrated store and the clock it was opened with.
pub struct Fixture {
    /// The store under test, opened with `Clock::Manual(clock)`.
    pub store: Arc<dyn Store>,
    /// The store's clock.
    pub clock: ManualClock,
    /// Values that must live as long as the store, such as a temporary directory or a database.
    pub guard: Box<dyn Any + Send + Sync>,
}

impl Fixture {
    /// Creates a fixture without a guard.
    pub fn new(store: Arc<dyn Store>, clock: ManualClock) -> Self {
        Self {
            store,
            clock,
            guard: Box::new(()),
        }
    }

    /// Adds a value that must live as long as the store.
    pub fn guarded(mut self, guard: impl Any + Send + Sync) -> Self {
        self.guard = Box::new(guard);
        self
    }
}

/// Returns a clock for the store under test.
pub fn clock() -> ManualClock {
    ManualClock::starting_at(Timestamp::from_second(START_SECONDS).unwrap_or(Timestamp::UNIX_EPOCH))
}
