//! The client and the worker over HTTP against a real server on a real socket, on both stores.

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

mod calls;
mod changes;
mod counting_server;
mod processes;
mod requests;
mod retries;
mod tls;
mod worker;

use std::time::Duration;

/// Long enough for a slow machine; what is waited for comes much sooner.
const PATIENCE: Duration = Duration::from_secs(60);

async fn bounded(scenario: impl Future<Output = ()>) {
    let over = tokio::time::timeout(Duration::from_secs(100), scenario).await;
    assert!(over.is_ok(), "it hangs");
}
