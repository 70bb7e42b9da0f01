//! Dispatch against a real Temporal server and both real stores, one scenario for each row of the failure and edge case tables.
//!
//! `docs/operations/failure-modes.md` lists the rows and which scenario shows each.

#![allow(clippy::unwrap_used)]

/// Makes a test of each scenario: on both stores, or on PostgreSQL where the other has nothing like it.
macro_rules! scenarios {
    (both: $($both:ident),*; $(postgres: $($only:ident),*;)?) => {
        mod postgres {
            $(#[tokio::test]
            async fn $both() {
                crate::bounded(super::$both(leasehold_testbed::BackendKind::Postgres)).await;
            })*
            $($(#[tokio::test]
            async fn $only() {
                crate::bounded(super::$only()).await;
            })*)?
        }
        mod sqlite {
            $(#[tokio::test]
            async fn $both() {
                crate::bounded(super::$both(leasehold_testbed::BackendKind::Sqlite)).await;
            })*
        }
    };
}

mod beacon;
mod breaker;
mod cancel;
mod capacity;
mod cast;
mod claim;
mod crash;
mod drift;
mod ends;
mod faulty_engine;
mod faulty_store;
mod follow;
mod gone;
mod happy;
mod isolation;
mod jobs;
mod lock;

mod dispatch_env;
mod outage;
mod refused;
mod runtime;
mod stop;
mod sweep;
mod temporal;
mod unknown;
mod wake;

use leasehold_testkit::log_events::Documented;
use leasehold_testkit::logs;

use std::time::Duration;

/// Long enough for a slow machine; what is waited for comes much sooner.
const PATIENCE: Duration = Duration::from_secs(30);
const LIMIT: Duration = Duration::from_secs(100);

async fn bounded(scenario: impl Future<Output = ()>) {
    let over = tokio::time::timeout(LIMIT, scenario).await;
    assert!(over.is_ok(), "it hangs; logged:\n{}", logs::all());
    logs::assert_documented(&documented());
}

/// The page of all events; whatever a scenario logs keeps to it.
fn documented() -> Documented {
    Documented::read(include_str!("../../../../docs/operations/logs.md"))
}

/// Asserts that this event of the page was logged, as the page says.
#[track_caller]
fn assert_event(event: &str) {
    logs::assert_seen(&documented(), event);
}
