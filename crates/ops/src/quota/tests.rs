//! Tests of what a call takes that is content with a part, on SQLite in memory.
#![allow(clippy::unwrap_used)]

use super::*;
use leasehold_core::Plan;
use leasehold_store::workspace::{NewWorkspace, WorkspaceChange};
use leasehold_store::{Actor, SchemaStore, fresh_id};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};

fn usage(requests: u64, bytes: u64) -> Usage {
    Usage { requests, bytes }
}

async fn workspace(store: &dyn Store, max_pending: u64, max_open_bytes: u64) -> WorkspaceId {
    let id: WorkspaceId = fresh_id();
    let new = NewWorkspace {
        id,
        name: id.to_string(),
        plan: Plan::Free,
        limit_override: None,
    };
    store.workspace_create(&new, &Actor::Local).await.unwrap();
    let change = WorkspaceChange {
        max_pending_override: Some(Some(max_pending)),
        max_open_bytes_override: Some(Some(max_open_bytes)),
        ..WorkspaceChange::default()
    };
    let changed = store.workspace_update(id, &change, &Actor::Local).await;
    changed.unwrap();
    id
}

#[tokio::test]
async fn part_that_fits_is_admitted_and_counts_while_it_is_held() {
    let store = SqliteStore::open_in_memory(&SqliteOptions::default()).unwrap();
    store.schema_migrate().await.unwrap();
    let quotas = Quotas::default();
    let id = workspace(&store, 5, 1_000).await;
    let part = async |wanted| {
        let part = quotas.admit_part(&store, id, wanted).await;
        part.map(|part| (part.usage(), part))
    };
    let (first, held) = part(usage(3, 400)).await.unwrap();
    assert_eq!(first, usage(3, 400));
    let other = quotas.admit(&store, id, usage(1, 100)).await.unwrap();
    assert!(quotas.admit(&store, id, usage(2, 0)).await.is_err());
    assert!(quotas.admit(&store, id, usage(1, 501)).await.is_err());
    let (rest, _) = part(usage(9, 9_000)).await.unwrap();
    assert_eq!(rest, usage(1, 500));
    // Nothing was enqueued after all: the store is queried, and it has none.
    drop((held, other));
    assert_eq!(part(usage(9, 9_000)).await.unwrap().0, usage(5, 1_000));
    let none = workspace(&store, 0, 1_000).await;
    assert!(quotas.admit_part(&store, none, usage(1, 1)).await.is_err());
    let unknown = quotas.admit_part(&store, fresh_id(), usage(7, 7)).await;
    assert_eq!(unknown.unwrap().usage(), usage(7, 7), "the store decides");
}

#[tokio::test]
async fn requests_in_flight_count_while_many_other_workspaces_are_used() {
    let store = SqliteStore::open_in_memory(&SqliteOptions::default()).unwrap();
    store.schema_migrate().await.unwrap();
    let quotas = Quotas::default();
    let id = workspace(&store, 5, 1_000).await;
    let in_flight = quotas.admit(&store, id, usage(4, 100)).await.unwrap();
    for _ in 1..WORKSPACES_MAX {
        quotas.known().entry(fresh_id()).or_default();
    }
    let other = quotas.admit(&store, fresh_id(), usage(1, 1)).await;
    drop(other.unwrap());
    assert_eq!(quotas.known().len(), 2, "the idle ones are forgotten");
    assert!(quotas.admit(&store, id, usage(2, 0)).await.is_err());
    drop(in_flight);
}
