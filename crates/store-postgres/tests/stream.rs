//! The change stream on PostgreSQL: transactions that commit late, and cursors of other databases.
#![allow(clippy::unwrap_used)]

use crate::{failover, support};

use leasehold_core::limits::{CHANGE_SCAN_MAX, CURSOR_MAX_BYTES, CURSOR_MAX_WRITERS};
use leasehold_core::{RequestId, RequestStatus, WorkspaceId};
use leasehold_store::change::ChangeStore;
use leasehold_store::change::{ChangeCursor, ChangeStart};
use leasehold_store::{ErrorKind, SchemaStore};
use leasehold_store_conformance::{Fixture, TestWorkspace, clock};
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use leasehold_testkit::{TestDatabase, fresh_cluster};
use serde_json::json;
use std::sync::Arc;
use support::raw::connect;
use tokio::task::block_in_place;
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

const ENQUEUE: &str = include_str!("sql/enqueue.sql");
const EVENT: &str = include_str!("sql/stream_event.sql");

async fn open_fixture() -> (Fixture, Arc<PostgresStore>, TestDatabase) {
    let database = support::database().await;
    let clock = clock();
    let store = Arc::new(support::store(&database, clock.clone()));
    (Fixture::new(store.clone(), clock), store, database)
}

async fn enqueue(client: &Client, workspace: &TestWorkspace) -> RequestId {
    let row = client
        .query_one(
            ENQUEUE,
            &[
                &workspace.workspace.0,
                &workspace.definition.0,
                &json!(null),
            ],
        )
        .await
        .unwrap();
    RequestId(row.get("id"))
}

/// Reads all changes after a cursor, one page for each change.
async fn rest(
    store: &PostgresStore,
    cursor: &ChangeCursor,
    workspace: Option<WorkspaceId>,
) -> Vec<RequestId> {
    let mut cursor = cursor.clone();
    let mut seen = Vec::new();
    loop {
        let start = ChangeStart::After(cursor);
        let page = store.change_list(&start, workspace, 10).await.unwrap();
        let Some(change) = page.changes.into_iter().next() else {
            return seen;
        };
        seen.push(change.event.request);
        cursor = change.cursor;
    }
}

#[tokio::test]
async fn late_commits_are_read_exactly_once_from_any_cursor() {
    let (f, store, database) = open_fixture().await;
    let (workspace, other) = (f.workspace(1).await, f.workspace(1).await);
    let start = store
        .change_list(&ChangeStart::Now, None, 10)
        .await
        .unwrap()
        .cursor;
    let (early, late) = (connect(&database).await, connect(&database).await);
    early.batch_execute("BEGIN").await.unwrap();
    late.batch_execute("BEGIN").await.unwrap();
    // Their transaction numbers and ids are lower than those of the events read meanwhile.
    let first = enqueue(&early, &workspace).await;
    let second = enqueue(&late, &workspace).await;
    let elsewhere = enqueue(&late, &other).await;
    let meanwhile = f.enqueue(&workspace, 3).await;
    let page = ChangeStart::After(start);
    let page = store.change_list(&page, None, 10).await.unwrap();
    let read: Vec<RequestId> = page.changes.iter().map(|c| c.event.request).collect();
    assert_eq!(read, meanwhile);
    early.batch_execute("COMMIT").await.unwrap();
    let cursors: Vec<&ChangeCursor> = page.changes.iter().map(|c| &c.cursor).collect();
    let mut between = Vec::new();
    for (taken, cursor) in cursors.iter().enumerate() {
        let mut expected = meanwhile[taken + 1..].to_vec();
        expected.push(first);
        assert_eq!(rest(&store, cursor, None).await, expected);
        let start = ChangeStart::After((*cursor).clone());
        let page = store.change_list(&start, None, 1).await.unwrap();
        between.push((expected[1..].to_vec(), page.changes[0].cursor.clone()));
    }
    assert_eq!(rest(&store, &page.cursor, None).await, [first]);
    late.batch_execute("COMMIT").await.unwrap();
    for (mut expected, cursor) in between {
        expected.push(second);
        assert_eq!(
            rest(&store, &cursor, Some(workspace.workspace)).await,
            expected,
            "of one workspace"
        );
        expected.push(elsewhere);
        assert_eq!(rest(&store, &cursor, None).await, expected);
    }
}

async fn kind(store: &PostgresStore, cursor: Vec<u8>) -> ErrorKind {
    let start = ChangeStart::After(ChangeCursor(cursor));
    store
        .change_list(&start, None, 10)
        .await
        .expect_err("the cursor must be rejected")
        .kind
}

#[tokio::test]
async fn cursor_of_another_database_is_rejected() {
    let (here, store, _database) = open_fixture().await;
    let (there, other, _other_database) = open_fixture().await;
    for f in [&here, &there] {
        let workspace = f.workspace(1).await;
        f.enqueue(&workspace, 3).await;
    }
    for start in [ChangeStart::Oldest, ChangeStart::Now] {
        let foreign = other.change_list(&start, None, 1).await.unwrap().cursor;
        assert!(matches!(kind(&store, foreign.0).await, ErrorKind::Gone(_)));
    }
}

#[tokio::test]
async fn cursor_with_unassigned_numbers_is_rejected() {
    let (f, store, _database) = open_fixture().await;
    let workspace = f.workspace(1).await;
    f.enqueue(&workspace, 3).await;
    let page = store.change_list(&ChangeStart::Oldest, None, 1).await;
    let cursor = page.unwrap().cursor.0;
    // After the kind of position: 8 bytes for the epoch, the number of the event, the end of the snapshot.
    let with =
        |at: usize, bytes: &[u8]| [&cursor[..at], bytes, &cursor[at + bytes.len()..]].concat();
    let future = [
        &cursor[..10],
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0, 0],
        &[0; 16],
    ]
    .concat();
    // Another epoch, and a snapshot in the future, as after restoring a backup.
    for gone in [with(1, &[9; 8]), future] {
        let refused = kind(&store, gone.clone()).await;
        assert!(matches!(refused, ErrorKind::Gone(_)), "{gone:?}");
    }
    // Another kind of position.
    for strange in [with(0, &[7]), with(0, &[2])] {
        let refused = kind(&store, strange.clone()).await;
        assert!(matches!(refused, ErrorKind::Value(_)), "{strange:?}");
    }
}

/// A cursor lists the transactions in progress, and must fit into a header.
#[tokio::test(flavor = "multi_thread")]
async fn cursor_is_short_although_hundreds_of_transactions_write() {
    let settings = [("max_prepared_transactions", "400"), ("fsync", "off")];
    let cluster = block_in_place(|| fresh_cluster(&settings));
    let store = Arc::new(PostgresStore::new(&PostgresOptions::new(cluster.url())).unwrap());
    store.schema_migrate().await.unwrap();
    let f = Fixture::new(store.clone(), clock());
    let workspace = f.workspace(1).await;
    let start = store.change_list(&ChangeStart::Now, None, 1).await.unwrap();
    let client = failover::connect(&cluster.url()).await;
    let mut expected = Vec::new();
    let writers = CURSOR_MAX_WRITERS + 50;
    // A prepared transaction is in progress without a connection.
    for n in 0..writers {
        client.batch_execute("BEGIN").await.unwrap();
        expected.push(enqueue(&client, &workspace).await);
        let prepare = format!("PREPARE TRANSACTION '{n}'");
        client.batch_execute(&prepare).await.unwrap();
        // Between them are transactions that have ended.
        if n % 100 == 0 {
            expected.extend(f.enqueue(&workspace, 1).await);
        }
    }
    let own = ChangeStart::After(start.cursor);
    for from in [&ChangeStart::Oldest, &ChangeStart::Now, &own] {
        let page = store.change_list(from, None, 1).await.unwrap();
        // The server adds a signature, and base64.
        let length = (page.cursor.0.len() + 64) * 4 / 3;
        assert!(length <= CURSOR_MAX_BYTES, "{from:?}: {length} bytes");
    }
    let page = store.change_list(&own, None, 1_000).await.unwrap();
    assert!(!page.changes.is_empty(), "what has ended can be read");
    for n in 0..writers {
        let commit = format!("COMMIT PREPARED '{n}'");
        client.batch_execute(&commit).await.unwrap();
    }
    let mut read: Vec<RequestId> = page.changes.iter().map(|c| c.event.request).collect();
    read.extend(rest(&store, &page.cursor, None).await);
    read.sort();
    expected.sort();
    assert_eq!(read, expected);
}

/// Reads all changes after a cursor in full pages.
async fn pages(store: &PostgresStore, cursor: ChangeCursor) -> Vec<(RequestId, RequestStatus)> {
    let (mut start, mut seen) = (ChangeStart::After(cursor), Vec::new());
    loop {
        let page = store.change_list(&start, None, 1_000).await.unwrap();
        let events = page.changes.into_iter().map(|change| change.event);
        seen.extend(events.map(|event| (event.request, event.to.known().unwrap())));
        if !page.more {
            return seen;
        }
        start = ChangeStart::After(page.cursor);
    }
}

#[tokio::test]
async fn long_transaction_stays_behind_the_changes_it_follows_in_every_window() {
    let (f, store, database) = open_fixture().await;
    let workspace = f.workspace(1).await;
    let start = store.change_list(&ChangeStart::Now, None, 1).await.unwrap();
    let long = connect(&database).await;
    long.batch_execute("BEGIN").await.unwrap();
    // Its transaction number is lower than those of all other changes.
    enqueue(&long, &workspace).await;
    let calls = CHANGE_SCAN_MAX as usize / 1_000 + 2;
    for _ in 0..calls {
        f.enqueue(&workspace, 1_000).await;
    }
    let late = f.enqueue(&workspace, 1).await[0];
    let own: &[&(dyn ToSql + Sync)] = &[&late.0, &workspace.workspace.0];
    long.execute(EVENT, own).await.unwrap();
    long.batch_execute("COMMIT").await.unwrap();
    let seen = pages(&store, start.cursor).await;
    assert_eq!(seen.len(), calls * 1_000 + 3);
    let of_late = seen.iter().filter(|(request, _)| *request == late);
    let statuses: Vec<RequestStatus> = of_late.map(|(_, to)| *to).collect();
    assert_eq!(statuses, [RequestStatus::Pending, RequestStatus::Failed]);
}
