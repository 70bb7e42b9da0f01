//! Tests of the quotas of a workspace, on SQLite in memory.
#![allow(clippy::unwrap_used)]

use futures::future::join_all;
use leasehold_core::{Plan, Usage, WorkspaceId};
use leasehold_ops::{QuotaError, Quotas, redrive};
use leasehold_store::request::RedriveMany;
use leasehold_store::workspace::{NewWorkspace, WorkspaceChange};
use leasehold_store::{
    Actor, LayeredStore, Result, SchemaStore, Store, StoreCall, StoreLayer, fresh_id,
};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use std::sync::Arc;

async fn store() -> SqliteStore {
    let store = SqliteStore::open_in_memory(&SqliteOptions::default()).unwrap();
    store.schema_migrate().await.unwrap();
    store
}

/// Creates a workspace with these limits.
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
    store
        .workspace_update(id, &change, &Actor::Local)
        .await
        .unwrap();
    id
}

fn usage(requests: u64, bytes: u64) -> Usage {
    Usage { requests, bytes }
}

#[tokio::test]
async fn admitted_requests_and_bytes_count_at_once() {
    let (store, quotas) = (store().await, Quotas::default());
    let id = workspace(&store, 10, 100).await;
    assert!(quotas.admit(&store, id, usage(11, 0)).await.is_err());
    let first = quotas.admit(&store, id, usage(6, 60)).await.unwrap();
    let second = quotas.admit(&store, id, usage(4, 40)).await.unwrap();
    // The store is queried and has none of them yet; they count all the same.
    assert!(quotas.admit(&store, id, usage(1, 0)).await.is_err());
    assert!(quotas.admit(&store, id, usage(0, 1)).await.is_err());
    drop((first, second));
    // Nothing was enqueued after all: near a limit the store is queried, and it has none.
    assert!(quotas.admit(&store, id, usage(10, 100)).await.is_ok());
}

/// Lets other calls run while the store is queried for a quota.
struct SlowQuota;

impl StoreLayer for SlowQuota {
    type Observer = ();

    fn observer(&self) -> &() {
        &()
    }

    async fn call<T: Send>(
        &self,
        call: StoreCall,
        run: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        if call == StoreCall::named("workspace_quota") {
            tokio::task::yield_now().await;
        }
        run.await
    }
}

/// Calls that began while the first figure of a workspace was read used to be admitted without one.
#[tokio::test]
async fn concurrent_calls_wait_for_the_first_figure_of_a_workspace() {
    let (store, quotas) = (store().await, Quotas::default());
    let id = workspace(&store, 3, 1_000).await;
    let store = LayeredStore::new(Arc::new(store), SlowQuota);
    let calls = (0..10).map(|_| quotas.admit(&store, id, usage(1, 1)));
    let calls = join_all(calls).await;
    assert_eq!(calls.iter().filter(|call| call.is_ok()).count(), 3);
}

/// A bulk redrive used to make the quotas forget what other calls were writing.
#[tokio::test]
async fn calls_in_flight_count_after_a_bulk_redrive() {
    let (store, quotas) = (store().await, Quotas::default());
    let id = workspace(&store, 3, 1_000).await;
    let in_flight = quotas.admit(&store, id, usage(2, 2)).await.unwrap();
    let many = RedriveMany {
        workspace: id,
        reason: None,
        definition: None,
        limit: 10,
        max_bytes: u64::MAX,
        by: "test".to_owned(),
    };
    let redriven = redrive::redrive_many(&store, &quotas, &many).await;
    assert_eq!(redriven.unwrap(), []);
    assert!(quotas.admit(&store, id, usage(2, 2)).await.is_err());
    drop(in_flight);
    assert!(quotas.admit(&store, id, usage(3, 3)).await.is_ok());
}

#[test]
fn rejection_names_the_figure_and_the_limit() {
    let rejected = QuotaError::Pending {
        pending: 2,
        added: 3,
        max: 3,
    };
    let expected = "backlog full: 2 requests of the workspace are pending, 3 more would exceed its max_pending of 3; retry when requests have started, or raise the limit";
    assert_eq!(rejected.to_string(), expected);
    assert!(rejected.may_fit_later());
    let rejected = QuotaError::Bytes {
        open: 4_000,
        added: 5_000,
        max: 5_000,
    };
    let expected = "quota exceeded: the open requests of the workspace have 4000 bytes, 5000 more would exceed its max_open_bytes of 5000; retry when requests have ended, or raise the limit";
    assert_eq!(rejected.to_string(), expected);
    assert!(rejected.may_fit_later());
}

#[tokio::test]
async fn rejection_of_a_call_that_never_fits_says_so() {
    let (store, quotas) = (store().await, Quotas::default());
    let id = workspace(&store, 3, 5_000).await;
    let many = quotas.admit(&store, id, usage(4, 10)).await.unwrap_err();
    let large = quotas.admit(&store, id, usage(1, 5_001)).await.unwrap_err();
    assert!(matches!(
        large,
        QuotaError::Bytes {
            open: 0,
            added: 5_001,
            max: 5_000
        }
    ));
    for rejected in [many, large] {
        assert!(!rejected.may_fit_later());
        let text = rejected.to_string();
        assert!(text.contains("waiting does not help"), "{text}");
    }
}

#[tokio::test]
async fn unknown_workspace_is_left_to_the_store() {
    let (store, quotas) = (store().await, Quotas::default());
    let id: WorkspaceId = fresh_id();
    let much = usage(1 << 40, 1 << 40);
    drop(quotas.admit(&store, id, much).await.unwrap());
}

#[tokio::test]
async fn number_of_known_workspaces_is_bounded() {
    let (store, quotas) = (store().await, Quotas::default());
    for _ in 0..10_100 {
        let id: WorkspaceId = fresh_id();
        drop(quotas.admit(&store, id, usage(3, 0)).await.unwrap());
    }
    let debug = format!("{quotas:?}");
    assert!(debug.matches("KnownQuota").count() <= 10_000);
}
