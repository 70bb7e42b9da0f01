//! The clock of a store: the database's, or one that a test moves.

use leasehold_core::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// The clock of a store.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// The database's own clock; the only one used in production.
    #[default]
    Database,
    /// A clock that a test moves.
    Manual(ManualClock),
}

impl Clock {
    /// Returns the time of a manual clock, or none if the database must use its own.
    pub fn now(&self) -> Option<Timestamp> {
        match self {
            Self::Database => None,
            Self::Manual(clock) => Some(clock.now()),
        }
    }
}

/// A clock that stands still until it is moved. Clones share their time.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    /// Creates a clock that shows `start`, to the microsecond.
    pub fn starting_at(start: Timestamp) -> Self {
        Self(Arc::new(AtomicI64::new(start.as_microsecond())))
    }

    /// Returns the time it shows.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_microsecond(self.0.load(Ordering::SeqCst)).unwrap_or(Timestamp::MAX)
    }

    /// Moves it forward.
    pub fn advance(&self, by: std::time::Duration) {
        self.0.fetch_add(
            i64::try_from(by.as_micros()).unwrap_or(i64::MAX / 2),
            Ordering::SeqCst,
        );
    }
}
