//! The stream of changes where PostgreSQL makes it hard: transactions that commit late, and cursors that are of no use here.
#![allow(clippy::unwrap_used)]

use crate::support;

use leasehold_core::{RequestId, WorkspaceId};
use leasehold_store::ErrorKind;
use leasehold_store::change::ChangeStore;
use leasehold_store::change::{ChangeCursor, ChangeStart};
use leasehold_store_conformance::{Fixture, TestWorkspace, clock};
use leasehold_store_postgres::PostgresStore;
use leasehold_testkit::TestDatabase;
use serde_json::json;
use std::sync::Arc;
use support::raw::connect;
use tokio_postgres::Client;

const ENQUEUE: &str = include_str!("sql/enqueue.sql");

async fn ground() -> (Fixture, Arc<PostgresStore>, TestDatabase) {
    let database = support::database().await;
    let clock = clock();
    let store = Arc::new(support::store(&database, clock.clone()));
    (Fixture::new(store.clone(), clock), store, database)
}

async fn enqueue(client: &Client, site: &TestWorkspace) -> RequestId {
    let row = client
        .query_one(
            ENQUEUE,
            &[&site.workspace.0, &site.definition.0, &json!(null)],
        )
        .await
        .unwrap();
    RequestId(row.get("id"))
}

/// All that comes after a cursor, one change at a time, each time going on after it.
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
async fn what_commits_late_is_read_once_wherever_one_went_on_meanwhile() {
    let (f, store, database) = ground().await;
    let (site, other) = (f.site(1).await, f.site(1).await);
    let start = store
        .change_list(&ChangeStart::Now, None, 10)
        .await
        .unwrap()
        .cursor;
    let (early, late) = (connect(&database).await, connect(&database).await);
    early.batch_execute("BEGIN").await.unwrap();
    late.batch_execute("BEGIN").await.unwrap();
    // Their numbers and ids come before those of all that is read meanwhile.
    let first = enqueue(&early, &site).await;
    let second = enqueue(&late, &site).await;
    let elsewhere = enqueue(&late, &other).await;
    let meanwhile = f.enqueue(&site, 3).await;
    let page = ChangeStart::After(start);
    let page = store.change_list(&page, None, 10).await.unwrap();
    let read: Vec<RequestId> = page.changes.iter().map(|c| c.event.request).collect();
    assert_eq!(read, meanwhile);
    early.batch_execute("COMMIT").await.unwrap();
    let places: Vec<&ChangeCursor> = page.changes.iter().map(|c| &c.cursor).collect();
    let mut between = Vec::new();
    for (taken, place) in places.iter().enumerate() {
        let mut expected = meanwhile[taken + 1..].to_vec();
        expected.push(first);
        assert_eq!(rest(&store, place, None).await, expected);
        let start = ChangeStart::After((*place).clone());
        let page = store.change_list(&start, None, 1).await.unwrap();
        between.push((expected[1..].to_vec(), page.changes[0].cursor.clone()));
    }
    assert_eq!(rest(&store, &page.cursor, None).await, [first]);
    late.batch_execute("COMMIT").await.unwrap();
    for (mut expected, place) in between {
        expected.push(second);
        assert_eq!(
            rest(&store, &place, Some(site.workspace)).await,
            expected,
            "of one workspace"
        );
        expected.push(elsewhere);
        assert_eq!(rest(&store, &place, None).await, expected);
    }
}

async fn kind(store: &PostgresStore, text: String) -> ErrorKind {
    let start = ChangeStart::After(ChangeCursor(text));
    store
        .change_list(&start, None, 10)
        .await
        .expect_err("it is no cursor of this stream")
        .kind
}

#[tokio::test]
async fn a_cursor_of_another_database_is_refused() {
    let (here, store, _database) = ground().await;
    let (there, other, _other_database) = ground().await;
    for f in [&here, &there] {
        let site = f.site(1).await;
        f.enqueue(&site, 3).await;
    }
    for start in [ChangeStart::Oldest, ChangeStart::Now] {
        let foreign = other.change_list(&start, None, 1).await.unwrap().cursor;
        assert!(matches!(kind(&store, foreign.0).await, ErrorKind::Value(_)));
    }
}

#[tokio::test]
async fn a_cursor_with_numbers_that_were_never_given_out_is_refused() {
    let (f, store, _database) = ground().await;
    let site = f.site(1).await;
    f.enqueue(&site, 3).await;
    let page = store.change_list(&ChangeStart::Oldest, None, 1).await;
    let cursor = page.unwrap().cursor.0;
    let parts: Vec<&str> = cursor.split('/').collect();
    let with = |place: usize, text: &str| {
        let mut parts = parts.clone();
        parts[place] = text;
        parts.join("/")
    };
    for strange in [
        // Another cluster, another database.
        with(0, "1"),
        with(1, "1"),
        // A state of this one that is yet to come, or that a backup has taken back.
        with(3, "900000000000:900000000000:"),
        with(3, "18446744073709551615:18446744073709551615:"),
        with(2, "900000000000:900000000000:"),
        // What PostgreSQL would not take for a snapshot.
        with(3, "99999999999999999999:1:"),
        with(3, "9:8:"),
        with(3, "1:1:\0"),
        with(4, "x"),
        with(5, "9223372036854775808"),
    ] {
        let refused = kind(&store, strange.clone()).await;
        assert!(matches!(refused, ErrorKind::Value(_)), "{strange:?}");
    }
}
