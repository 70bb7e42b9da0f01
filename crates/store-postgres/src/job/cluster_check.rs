//! Schedules the check whether the database was moved to another cluster. Knows no SQL.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A running process checks again, because the database may fail over to another cluster.
const INTERVAL: Duration = Duration::from_secs(60);

/// The time of the last check.
#[derive(Debug, Default)]
pub(super) struct ClusterCheck(Mutex<Option<Instant>>);

impl ClusterCheck {
    pub(super) fn is_due(&self) -> bool {
        let checked = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        checked.is_none_or(|at| at.elapsed() >= INTERVAL)
    }

    pub(super) fn done(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }
}
