//! `leasehold serve` as a process against a real PostgreSQL and a real Temporal: normal operation and faults.
//!
//! The tests observe from outside: the database, Temporal through its CLI, and the process.

#![allow(clippy::unwrap_used)]
#![allow(clippy::print_stdout, reason = "prints measurements")]

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

/// Generous for slow machines; conditions hold much sooner.
const TIMEOUT: Duration = Duration::from_secs(180);

/// Runs blocking code without blocking the runtime.
fn blocking<T>(work: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(work)
}
