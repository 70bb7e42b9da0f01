//! Tests of the backlog limit, on SQLite in memory.
#![allow(clippy::unwrap_used)]

use leasehold_core::WorkspaceId;
use leasehold_ops::{Backlog, BacklogError};
use leasehold_store::{SchemaStore, fresh_id};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};

async fn store() -> SqliteStore {
    let store = SqliteStore::open_in_memory(&SqliteOptions::default()).unwrap();
    store.schema_migrate().await.unwrap();
    store
}

#[tokio::test]
async fn admitted_requests_count_at_once() {
    let (store, backlog) = (store().await, Backlog::new(10));
    let workspace: WorkspaceId = fresh_id();
    assert!(backlog.admit(&store, workspace, 11).await.is_err());
    backlog.admit(&store, workspace, 6).await.unwrap();
    backlog.admit(&store, workspace, 4).await.unwrap();
    // Nothing was enqueued after all: near the limit the store is queried, and its count is 0.
    backlog.admit(&store, workspace, 10).await.unwrap();
}

#[tokio::test]
async fn rejection_names_the_pending_requests_and_the_limit() {
    let (store, backlog) = (store().await, Backlog::new(3));
    let rejected = backlog.admit(&store, fresh_id(), 4).await.unwrap_err();
    assert!(matches!(
        rejected,
        BacklogError::Full {
            pending: 0,
            added: 4,
            max: 3
        }
    ));
    let expected =
        "backlog full: 0 requests of the workspace are pending, 4 more would exceed the limit of 3";
    assert_eq!(rejected.to_string(), expected);
}

#[tokio::test]
async fn number_of_known_workspaces_is_bounded() {
    let (store, backlog) = (store().await, Backlog::new(3));
    for _ in 0..10_100 {
        let workspace: WorkspaceId = fresh_id();
        backlog.admit(&store, workspace, 3).await.unwrap();
    }
    let debug = format!("{backlog:?}");
    assert!(debug.matches("KnownCount").count() <= 10_000);
}
