//! How much may wait in a workspace, and how seldom the store is asked, on SQLite in memory.
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
async fn what_is_let_in_counts_at_once_and_whole() {
    let (store, backlog) = (store().await, Backlog::new(10));
    let workspace: WorkspaceId = fresh_id();
    assert!(backlog.admit(&store, workspace, 11).await.is_err());
    backlog.admit(&store, workspace, 6).await.unwrap();
    backlog.admit(&store, workspace, 4).await.unwrap();
    // Nothing was enqueued after all: when it gets tight the store is asked, and knows.
    backlog.admit(&store, workspace, 10).await.unwrap();
}

#[tokio::test]
async fn a_refusal_says_how_much_waits_and_how_much_may() {
    let (store, backlog) = (store().await, Backlog::new(3));
    let refused = backlog.admit(&store, fresh_id(), 4).await.unwrap_err();
    assert!(matches!(
        refused,
        BacklogError::Full {
            pending: 0,
            asked: 4,
            max: 3
        }
    ));
    let expected = "0 requests of the workspace wait; 4 more would be more than 3";
    assert_eq!(refused.to_string(), expected);
}

#[tokio::test]
async fn a_workspace_is_remembered_until_there_are_too_many() {
    let (store, backlog) = (store().await, Backlog::new(3));
    for _ in 0..10_100 {
        let workspace: WorkspaceId = fresh_id();
        backlog.admit(&store, workspace, 3).await.unwrap();
    }
    let debug = format!("{backlog:?}");
    assert!(debug.matches("Known").count() <= 10_000);
}
