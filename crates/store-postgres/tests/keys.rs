//! API keys under concurrent and manual writes.
#![allow(clippy::unwrap_used)]

use crate::support;

use leasehold_core::key::{KeyRights, KeyScope};
use leasehold_store::fresh_id;
use leasehold_store::key::{KeyCreated, KeyStore, NewKey};
use leasehold_store_conformance::{Fixture, clock};
use leasehold_testkit::{TestDatabase, eventually};
use std::sync::Arc;
use std::time::Duration;
use support::raw::{connect, rejected_by};
use tokio_postgres::Client;
use uuid::Uuid;

async fn open_fixture() -> (Fixture, Client, TestDatabase) {
    let clock = clock();
    let database = support::database().await;
    let store = support::store(&database, clock.clone());
    let client = connect(&database).await;
    (Fixture::new(Arc::new(store), clock), client, database)
}

fn key(scope: KeyScope) -> NewKey {
    NewKey {
        id: fresh_id(),
        name: "a key".into(),
        rights: KeyRights::full(scope),
        expires_in: None,
        hash: [7; 32],
    }
}

#[tokio::test]
async fn key_creation_waits_for_workspace_deletion_and_fails() {
    for (end, made) in [("COMMIT", false), ("ROLLBACK", true)] {
        let (f, client, database) = open_fixture().await;
        let workspace = f.workspace(1).await.workspace;
        let deleting = connect(&database).await;
        deleting.batch_execute("BEGIN").await.unwrap();
        let bury = include_str!("sql/workspace_delete.sql");
        deleting.execute(bury, &[&workspace.0]).await.unwrap();
        let store = f.store.clone();
        let new = key(KeyScope::Workspace(workspace));
        let making = tokio::spawn(async move {
            store
                .key_create(&new, &leasehold_store::Actor::Local)
                .await
                .unwrap()
        });
        let waits = eventually(Duration::from_secs(60), || async {
            let row = client.query_one(include_str!("sql/lock_waits.sql"), &[]);
            row.await.unwrap().get::<_, i64>("waiting") > 0
        });
        assert!(
            waits.await,
            "key creation waits for the deletion of the workspace"
        );
        deleting.batch_execute(end).await.unwrap();
        let created = making.await.unwrap();
        assert_eq!(matches!(created, KeyCreated::Created(_)), made, "{end}");
    }
}

#[tokio::test]
async fn concurrent_processes_create_one_first_key() {
    let (f, _client, database) = open_fixture().await;
    let stores: Vec<_> = (0..8)
        .map(|_| support::store(&database, f.clock.clone()))
        .collect();
    let making = stores.into_iter().enumerate().map(|(n, store)| {
        tokio::spawn(async move {
            let new = NewKey {
                hash: [u8::try_from(n).unwrap(); 32],
                ..key(KeyScope::Admin)
            };
            store
                .key_create_first(&new, &leasehold_store::Actor::Local)
                .await
                .unwrap()
        })
    });
    let mut made = 0;
    for one in making.collect::<Vec<_>>() {
        made += usize::from(one.await.unwrap().is_some());
    }
    assert_eq!(made, 1);
}

#[tokio::test]
async fn inconsistent_key_is_rejected_by_the_database() {
    let (f, client, _database) = open_fixture().await;
    let workspace = Some(f.workspace(1).await.workspace.0);
    let queues = |names: &[Option<&'static str>]| Some(names.to_vec());
    let hash = vec![1u8; 32];
    for (kind, workspace, queues, hash, constraint) in [
        ("root", None, None, &hash, "api_key_kind"),
        ("admin", workspace, None, &hash, "api_key_workspace"),
        ("workspace", None, None, &hash, "api_key_workspace"),
        ("worker", None, None, &hash, "api_key_queues"),
        ("worker", None, queues(&[]), &hash, "api_key_queues"),
        ("worker", None, queues(&[None]), &hash, "api_key_queues"),
        ("admin", None, queues(&[Some("a")]), &hash, "api_key_queues"),
        ("admin", None, None, &vec![1; 31], "api_key_hash_length"),
        (
            "workspace",
            Some(Uuid::nil()),
            None,
            &hash,
            "api_key_of_workspace",
        ),
    ] {
        let insert = include_str!("sql/key_insert.sql");
        let id = Uuid::now_v7();
        let inserted = client
            .execute(insert, &[&id, &kind, &workspace, &queues, hash])
            .await;
        assert_eq!(rejected_by(inserted), constraint, "{kind}");
    }
}
