//! A file that was replaced by an older copy of itself: cursors of the change stream are exact or refused.
#![allow(clippy::unwrap_used)]

use leasehold_core::RequestId;
use leasehold_store::change::{ChangeCursor, ChangeStart, ChangeStore};
use leasehold_store::{ErrorKind, Result, SchemaStore};
use leasehold_store_conformance::{Fixture, TestWorkspace, clock};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use leasehold_testkit::temp_dir;
use rusqlite::Connection;
use std::fs;
use std::path::Path;
use std::sync::Arc;

async fn open(file: &Path) -> (Arc<SqliteStore>, Fixture) {
    let store = Arc::new(SqliteStore::open(file, &SqliteOptions::default()).unwrap());
    store.schema_migrate().await.unwrap();
    (store.clone(), Fixture::new(store, clock()))
}

/// Enqueues requests one by one; returns them, and the cursor after each.
async fn enqueue(
    (store, f): (&SqliteStore, &Fixture),
    workspace: &TestWorkspace,
    n: usize,
) -> Vec<(RequestId, ChangeCursor)> {
    let mut all = Vec::new();
    for _ in 0..n {
        let id = f.enqueue(workspace, 1).await[0];
        let page = store.change_list(&ChangeStart::Now, None, 1).await.unwrap();
        all.push((id, page.cursor));
    }
    all
}

async fn after(store: &SqliteStore, cursor: &ChangeCursor) -> Result<Vec<RequestId>> {
    let start = ChangeStart::After(cursor.clone());
    let page = store.change_list(&start, None, 100).await?;
    let changes = page.changes.iter();
    Ok(changes.map(|change| change.event.request).collect())
}

#[tokio::test]
async fn cursors_of_a_restored_copy_are_exact_or_refused() {
    let directory = temp_dir();
    let (file, copy) = (directory.path().join("db"), directory.path().join("copy"));
    let (store, f) = open(&file).await;
    let workspace = f.workspace(1).await;
    let kept = enqueue((&store, &f), &workspace, 3).await;
    let copied = include_str!("sql/copy.sql");
    let to = copy.to_str().unwrap();
    Connection::open(&file)
        .unwrap()
        .execute(copied, [to])
        .unwrap();
    let lost = enqueue((&store, &f), &workspace, 3).await;
    drop((store, f));
    // Restarts change nothing: the file has the same history.
    let (store, f) = open(&file).await;
    assert_eq!(after(&store, &lost[0].1).await.unwrap().len(), 2);
    let later = enqueue((&store, &f), &workspace, 1).await;
    drop((store, f));

    fs::rename(copy, &file).unwrap();
    let (store, f) = open(&file).await;
    let new = enqueue((&store, &f), &workspace, 10).await;
    let mut expected: Vec<RequestId> = kept.iter().chain(&new).map(|(id, _)| *id).collect();
    for (_, cursor) in kept.iter().chain(&new) {
        expected.remove(0);
        assert_eq!(after(&store, cursor).await.unwrap(), expected);
    }
    for (_, cursor) in lost.iter().chain(&later) {
        let error = after(&store, cursor).await.unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Gone(_)), "{error}");
    }
}
