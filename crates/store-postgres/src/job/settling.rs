//! When to ask whether the rows are still of the cluster that they were of. Knows no SQL.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A database may be switched over under a process that runs.
const EVERY: Duration = Duration::from_secs(60);

/// When it was asked last.
#[derive(Debug, Default)]
pub(super) struct Settling(Mutex<Option<Instant>>);

impl Settling {
    pub(super) fn is_due(&self) -> bool {
        let asked = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        asked.is_none_or(|at| at.elapsed() >= EVERY)
    }

    pub(super) fn done(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }
}
