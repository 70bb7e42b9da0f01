//! Tests of the worker runtime on both real stores.

#![allow(clippy::unwrap_used)]

/// Defines a test of each scenario per store.
macro_rules! on_both {
    ($($scenario:ident),* $(,)?) => {
        mod postgres {
            $(#[tokio::test]
            async fn $scenario() {
                crate::bounded(super::$scenario(leasehold_testbed::BackendKind::Postgres)).await;
            })*
        }
        mod sqlite {
            $(#[tokio::test]
            async fn $scenario() {
                crate::bounded(super::$scenario(leasehold_testbed::BackendKind::Sqlite)).await;
            })*
        }
    };
}

mod batches;
mod build;
mod drain;
mod examples;
mod failures;
mod handlers;
mod leases;
mod limits;
mod worker_env;

mod faulty_source;
mod notifications;
mod queues;

use leasehold_testkit::logs;

use std::time::Duration;

/// Limit on waiting for an expected event; long enough for a slow machine.
const WAIT_TIMEOUT: Duration = Duration::from_secs(120);
/// A poll interval so long that only notifications wake the worker.
const NEVER: Duration = Duration::from_secs(3600);

async fn bounded(scenario: impl Future<Output = ()>) {
    let over = tokio::time::timeout(Duration::from_secs(400), scenario).await;
    assert!(over.is_ok(), "the test timed out; log:\n{}", logs::all());
}
