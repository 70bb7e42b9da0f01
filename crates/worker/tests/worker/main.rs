//! The worker runtime on both real stores: what handlers are promised, and what becomes of jobs whatever happens to their worker.

#![allow(clippy::unwrap_used)]

/// Makes a test of each scenario on both stores.
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

mod queues;
mod spy;
mod wake;

use leasehold_testkit::logs;

use std::time::Duration;

/// Long enough for a slow machine; what is waited for comes much sooner.
const PATIENCE: Duration = Duration::from_secs(30);
/// So long that only a wake-up can be the reason for what happens.
const NEVER: Duration = Duration::from_secs(3600);

async fn bounded(scenario: impl Future<Output = ()>) {
    let over = tokio::time::timeout(Duration::from_secs(100), scenario).await;
    assert!(over.is_ok(), "it hangs; logged:\n{}", logs::all());
}
