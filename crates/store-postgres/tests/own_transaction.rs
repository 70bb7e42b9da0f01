//! A transaction that folds between its own events: each of its events is counted once.
#![allow(clippy::unwrap_used)]

use crate::support;

use leasehold_store_conformance::{Fixture, clock};
use serde_json::json;
use std::sync::Arc;
use support::raw::connect;

const ENQUEUE: &str = include_str!("sql/enqueue.sql");
const FOLD: &str = include_str!("sql/fold.sql");
const PENDING: &str = include_str!("sql/pending_count.sql");

#[tokio::test]
async fn events_before_and_after_a_fold_are_counted_once() {
    let database = support::database().await;
    let clock = clock();
    let f = Fixture::new(Arc::new(support::store(&database, clock.clone())), clock);
    let t = f.workspace(5).await;
    let (client, other) = (connect(&database).await, connect(&database).await);
    let params = json!({});
    let (workspace, definition) = (t.workspace.0, t.definition.0);
    client.batch_execute("BEGIN").await.unwrap();
    client
        .query_one(ENQUEUE, &[&workspace, &definition, &params])
        .await
        .unwrap();
    // A later transaction ends first, so the snapshot of the fold is beyond the open one.
    other
        .query_one(ENQUEUE, &[&workspace, &definition, &params])
        .await
        .unwrap();
    client.batch_execute(FOLD).await.unwrap();
    client
        .query_one(ENQUEUE, &[&workspace, &definition, &params])
        .await
        .unwrap();
    client.batch_execute("COMMIT").await.unwrap();
    other.batch_execute(FOLD).await.unwrap();
    let row = other.query_one(PENDING, &[&workspace]).await.unwrap();
    assert_eq!(row.get::<_, i64>("pending"), 3);
    assert_eq!(f.counts(t.workspace).await.pending, 3);
}
