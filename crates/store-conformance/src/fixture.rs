//! What an adapter hands to each case: an empty store whose clock the case moves. Knows no database.

use leasehold_core::Timestamp;
use leasehold_store::{ManualClock, Store};
use std::any::Any;
use std::sync::Arc;

/// 2026-01-01 00:00:00 UTC: an arbitrary moment, the same in every run.
const START_SECONDS: i64 = 1_767_225_600;

/// An empty, migrated store and the clock it was opened with.
pub struct Fixture {
    /// The store under test, opened with `Clock::Manual(clock)`.
    pub store: Arc<dyn Store>,
    /// The clock the store judges by.
    pub clock: ManualClock,
    /// Whatever must live as long as the store: a temporary folder, a database.
    pub guard: Box<dyn Any + Send + Sync>,
}

impl Fixture {
    /// A fixture that needs nothing kept alive.
    pub fn new(store: Arc<dyn Store>, clock: ManualClock) -> Self {
        Self {
            store,
            clock,
            guard: Box::new(()),
        }
    }

    /// The same, with something that must live as long as the store.
    pub fn guarded(mut self, guard: impl Any + Send + Sync) -> Self {
        self.guard = Box::new(guard);
        self
    }
}

/// The clock to open a store under test with.
pub fn clock() -> ManualClock {
    ManualClock::starting_at(Timestamp::from_second(START_SECONDS).unwrap_or(Timestamp::UNIX_EPOCH))
}
