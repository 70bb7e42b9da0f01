//! Whose clock judges: the database's, unless a test turns the hands itself.

use leasehold_core::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Where a store takes the time from.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// The database's own clock: the only one that judges in production.
    #[default]
    Database,
    /// A clock that a test moves.
    Manual(ManualClock),
}

impl Clock {
    /// The time to judge by, or none where the database shall look at its own clock.
    pub fn now(&self) -> Option<Timestamp> {
        match self {
            Self::Database => None,
            Self::Manual(clock) => Some(clock.now()),
        }
    }
}

/// A clock that stands still until it is moved. Clones share their hands.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    /// A clock that shows `start`, to the microsecond.
    pub fn starting_at(start: Timestamp) -> Self {
        Self(Arc::new(AtomicI64::new(start.as_microsecond())))
    }

    /// What it shows.
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
