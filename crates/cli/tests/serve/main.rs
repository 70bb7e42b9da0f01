//! `leasehold serve` as a process, against a real PostgreSQL and a real Temporal: what it does, and what it survives.
//!
//! The tests look from outside: at the database, at Temporal through its own command line, and at the process itself.

#![allow(clippy::unwrap_used)]
#![allow(
    clippy::print_stdout,
    reason = "numbers that were measured are shown beside the test"
)]

mod absence;
mod crash;
mod database;
mod drift;
mod first_start;
mod happy;
mod idle;
mod life;
mod logs;
mod metrics;
mod order;
mod order_workspace;
mod parallel;
mod paused;
mod program;
mod refusal;
mod restart;
mod scrape;
mod secrecy;
mod stopping;
mod takeover;
mod temporal;
mod traces;

use std::time::Duration;

/// Long enough for a slow machine; what is waited for comes much sooner.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs what blocks its thread without holding up the others.
fn blocking<T>(work: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(work)
}
