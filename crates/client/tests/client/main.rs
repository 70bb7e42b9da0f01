//! Tests of the client and the HTTP worker against a real server on a socket, on both stores.

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

mod calls;
mod changes;
mod counting_server;
mod processes;
mod requests;
mod retries;
mod tls;
mod worker;

use std::time::Duration;

/// Limit on waiting for an expected event; long enough for a slow machine.
const WAIT_TIMEOUT: Duration = Duration::from_secs(300);

async fn bounded(scenario: impl Future<Output = ()>) {
    let over = tokio::time::timeout(Duration::from_secs(600), scenario).await;
    assert!(over.is_ok(), "the test timed out");
}
