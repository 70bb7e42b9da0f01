//! Tests with worker processes: killed, suspended, with a wrong clock, many at one limit; and many jobs with few workers. The tests read
//! the outcome from the database.

#![allow(clippy::unwrap_used)]

mod child;
mod clock;
mod flaky_source;
mod history;
mod job_database;
mod limits;
mod many_jobs;
mod program;
mod protocol;
mod takeover;

use std::time::Duration;
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Limit on waiting for an expected event; long enough for a slow machine.
const WAIT_TIMEOUT: Duration = Duration::from_secs(300);
/// A poll interval so long that only notifications wake a worker.
const NEVER: Duration = Duration::from_secs(3600);

/// Separates tests that keep every core busy from tests that measure time.
static MACHINE: RwLock<()> = RwLock::const_new(());

/// Waits until no test keeps every core busy.
async fn quiet_machine() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().await
}

/// Waits until no other test runs.
async fn exclusive() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().await
}

/// Simulates work of this length.
async fn work_for(time: Duration) {
    let _ = tokio::time::timeout(time, std::future::pending::<()>()).await;
}
