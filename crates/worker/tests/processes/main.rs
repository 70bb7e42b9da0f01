//! Workers as processes: killed, stopped, with a wrong clock, many at one limit; and many jobs through a few workers. What became of the jobs
//! is read from the database.

#![allow(clippy::unwrap_used)]

mod child;
mod clock;
mod history;
mod job_database;
mod limits;
mod many;
mod orders;
mod program;
mod takeover;
mod unsteady;

use std::time::Duration;
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Long enough for a slow machine; what is waited for comes much sooner.
const PATIENCE: Duration = Duration::from_secs(60);
/// So long that only a wake-up can be the reason for what happens.
const NEVER: Duration = Duration::from_secs(3600);

/// Some of these tests keep every core busy, and others ask how long something took.
static MACHINE: RwLock<()> = RwLock::const_new(());

/// Waits until no test keeps the machine busy.
async fn calm() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().await
}

/// Waits until no other test runs.
async fn alone() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().await
}

/// What a handler does that works for so long.
async fn take(time: Duration) {
    let _ = tokio::time::timeout(time, std::future::pending::<()>()).await;
}
