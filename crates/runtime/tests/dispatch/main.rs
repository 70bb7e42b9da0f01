//! Dispatch against a real Temporal server and both real stores, one scenario for each row of the failure and edge case tables.
//!
//! `docs/operations/failure-modes.md` lists the rows and which scenario shows each.

#![allow(clippy::unwrap_used)]

/// Generates a test for each scenario: on both stores, or on PostgreSQL only.
macro_rules! scenarios {
    (both: $($both:ident),*; $(postgres: $($only:ident),*;)?) => {
        mod postgres {
            $(#[tokio::test]
            async fn $both() {
                crate::run_scenario(super::$both(leasehold_testbed::BackendKind::Postgres)).await;
            })*
            $($(#[tokio::test]
            async fn $only() {
                crate::run_scenario(super::$only()).await;
            })*)?
        }
        mod sqlite {
            $(#[tokio::test]
            async fn $both() {
                crate::run_scenario(super::$both(leasehold_testbed::BackendKind::Sqlite)).await;
            })*
        }
    };
}

mod breaker;
mod cancel;
mod capacity;
mod claim;
mod crash;
mod deleted;
mod dispatch_env;
mod drift;
mod ends;
mod faulty_engine;
mod faulty_store;
mod fixtures;
mod happy;
mod heartbeat;
mod isolation;
mod jobs;
mod lock;
mod notifications;
mod outage;
mod panics;
mod poison;
mod poison_start;
mod reconcile;
mod refused;
mod runtime;
mod stop;
mod swallowing_proxy;
mod sweep;
mod temporal;
mod unknown;
mod unreadable;

use leasehold_testkit::log_events::DocumentedEvents;
use leasehold_testkit::logs;

use std::time::Duration;

/// How long a scenario waits for a condition; generous, for a slow machine.
const WAIT_TIMEOUT: Duration = Duration::from_secs(120);
/// How long one scenario may run.
const SCENARIO_TIMEOUT: Duration = Duration::from_secs(400);

async fn run_scenario(scenario: impl Future<Output = ()>) {
    let over = tokio::time::timeout(SCENARIO_TIMEOUT, scenario).await;
    assert!(over.is_ok(), "scenario timed out; logged:\n{}", logs::all());
    logs::assert_documented(&documented());
}

/// Returns the page of all events, which every logged event must match.
fn documented() -> DocumentedEvents {
    DocumentedEvents::parse(include_str!("../../../../docs/operations/logs.md"))
}

/// Asserts that this event of the page was logged with its documented level and fields.
#[track_caller]
fn assert_event(event: &str) {
    logs::assert_logged(&documented(), event);
}
