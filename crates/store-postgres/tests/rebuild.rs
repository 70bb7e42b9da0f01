//! `CALL leasehold_rebuild()`: it corrects figures exactly, beside open transactions, and hides nothing from the change stream.
#![allow(clippy::unwrap_used)]

use crate::support;

use leasehold_core::{RequestId, WorkspaceId};
use leasehold_store::change::{ChangeStart, ChangeStore};
use leasehold_store_conformance::{Fixture, TestWorkspace, clock, invariants};
use leasehold_store_postgres::PostgresStore;
use leasehold_testkit::TestDatabase;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use support::raw::connect;
use tokio::time::timeout;
use tokio_postgres::Client;

const REBUILD: &str = include_str!("sql/rebuild.sql");
const RECOUNT: &str = include_str!("sql/recount.sql");
const ENQUEUE: &str = include_str!("sql/enqueue.sql");
const PENDING: &str = include_str!("sql/pending_count.sql");
const FOLD: &str = include_str!("sql/fold.sql");
const WRONG: &str = include_str!("sql/drift_counts.sql");
/// The locks of these tests are held longer, so a call that waits for one of them does not end within this.
const PROMPT: Duration = Duration::from_secs(60);

async fn open_fixture() -> (Fixture, Arc<PostgresStore>, TestDatabase) {
    let database = support::database().await;
    let clock = clock();
    let store = Arc::new(support::store(&database, clock.clone()));
    (Fixture::new(store.clone(), clock), store, database)
}

async fn enqueue(client: &Client, workspace: &TestWorkspace) -> RequestId {
    let (workspace, definition) = (workspace.workspace.0, workspace.definition.0);
    let params = json!(null);
    let row = client
        .query_one(ENQUEUE, &[&workspace, &definition, &params])
        .await;
    RequestId(row.unwrap().get("id"))
}

async fn rebuild(client: &Client) {
    let call = timeout(PROMPT, client.batch_execute(REBUILD));
    call.await.expect("the rebuild waits").unwrap();
}

/// Adds three to the recorded number of DISPATCHED requests.
async fn make_wrong(client: &Client, workspace: WorkspaceId) {
    client.batch_execute(FOLD).await.unwrap();
    assert_eq!(client.execute(WRONG, &[&workspace.0]).await.unwrap(), 1);
}

#[tokio::test]
async fn events_that_a_change_stream_has_not_read_are_read_after_a_rebuild() {
    let (f, store, database) = open_fixture().await;
    let workspace = f.workspace(1).await;
    let now = ChangeStart::Now;
    let start = store.change_list(&now, None, 10).await.unwrap().cursor;
    let unread = f.enqueue(&workspace, 3).await;
    rebuild(&connect(&database).await).await;
    let after = ChangeStart::After(start);
    let page = store.change_list(&after, None, 10).await.unwrap();
    let read: Vec<RequestId> = page.changes.iter().map(|one| one.event.request).collect();
    assert_eq!(read, unread);
}

#[tokio::test]
async fn rebuild_waits_for_no_open_transaction_and_delays_no_other() {
    let (f, _store, database) = open_fixture().await;
    let (workspace, other) = (f.workspace(5).await, f.workspace(5).await);
    let running = f.enqueue_running(&workspace).await;
    let (writer, locker, client) = (
        connect(&database).await,
        connect(&database).await,
        connect(&database).await,
    );
    make_wrong(&client, workspace.workspace).await;
    // One transaction has written, another has locked the rows that the figures are in.
    writer.batch_execute("BEGIN").await.unwrap();
    enqueue(&writer, &workspace).await;
    locker.batch_execute("BEGIN").await.unwrap();
    let lock = include_str!("sql/turn_lock.sql");
    let workspace_id = &workspace.workspace.0;
    locker.execute(lock, &[workspace_id]).await.unwrap();
    let others = async {
        for _ in 0..5 {
            f.enqueue(&other, 1).await;
            let claimed = timeout(PROMPT, f.claim(5)).await;
            assert_eq!(claimed.expect("the claim waits").requests.len(), 1);
        }
    };
    tokio::join!(rebuild(&client), others);
    locker.batch_execute("ROLLBACK").await.unwrap();
    writer.batch_execute("COMMIT").await.unwrap();
    f.finish(running.execution, leasehold_core::ExecutionEnd::Completed)
        .await;
    let counts = f.counts(workspace.workspace).await;
    assert_eq!(
        (counts.pending, counts.dispatched, counts.completed),
        (1, 0, 1)
    );
    invariants::check(&f).await;
}

/// Its events before the rebuild are not visible to it, and later ones are not counted by it.
#[tokio::test]
async fn events_of_a_transaction_before_and_after_a_rebuild_are_counted_once() {
    let (f, _store, database) = open_fixture().await;
    let workspace = f.workspace(5).await;
    let (writer, client) = (connect(&database).await, connect(&database).await);
    writer.batch_execute("BEGIN").await.unwrap();
    enqueue(&writer, &workspace).await;
    // A later transaction ends first, so the snapshot of the rebuild is beyond the open one.
    enqueue(&client, &workspace).await;
    rebuild(&client).await;
    enqueue(&writer, &workspace).await;
    writer.batch_execute("COMMIT").await.unwrap();
    client.batch_execute(FOLD).await.unwrap();
    let id = &workspace.workspace.0;
    let row = client.query_one(PENDING, &[id]).await.unwrap();
    assert_eq!(row.get::<_, i64>("pending"), 3);
    assert_eq!(f.counts(workspace.workspace).await.pending, 3);
}

#[tokio::test]
async fn two_rebuilds_at_once_correct_a_figure_once() {
    let (f, _store, database) = open_fixture().await;
    let workspace = f.workspace(5).await;
    f.enqueue_running(&workspace).await;
    let (first, second) = (connect(&database).await, connect(&database).await);
    make_wrong(&first, workspace.workspace).await;
    first.batch_execute("BEGIN").await.unwrap();
    let id = &workspace.workspace.0;
    let row = first.query_one(RECOUNT, &[id]).await.unwrap();
    assert!(row.get::<_, bool>("was_wrong"));
    let end_first = async {
        let waits = include_str!("sql/lock_waits.sql");
        let blocked = leasehold_testkit::eventually(PROMPT, async || {
            let row = first.query_one(waits, &[]).await.unwrap();
            row.get::<_, i64>("waiting") > 0
        });
        assert!(blocked.await, "the second waits for the first");
        first.batch_execute("COMMIT").await.unwrap();
    };
    tokio::join!(rebuild(&second), end_first);
    let counts = f.counts(workspace.workspace).await;
    assert_eq!((counts.dispatched, counts.completed), (1, 0));
    let row = second.query_one(RECOUNT, &[id]).await.unwrap();
    assert!(!row.get::<_, bool>("was_wrong"));
    invariants::check(&f).await;
}

/// Under another isolation level a recount would count in a snapshot from before its lock.
#[tokio::test]
async fn rebuild_is_exact_for_a_role_with_another_default_isolation_and_refused_in_a_transaction() {
    let (f, _store, database) = open_fixture().await;
    let workspace = f.workspace(5).await;
    f.enqueue_running(&workspace).await;
    let client = connect(&database).await;
    make_wrong(&client, workspace.workspace).await;
    client.batch_execute("BEGIN").await.unwrap();
    let refused = client.batch_execute(REBUILD).await.unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "2D000");
    client.batch_execute("ROLLBACK").await.unwrap();
    let isolation = include_str!("sql/isolation_serializable.sql");
    client.batch_execute(isolation).await.unwrap();
    let id = &workspace.workspace.0;
    let refused = client.query_one(RECOUNT, &[id]).await.unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "25000");
    rebuild(&client).await;
    let counts = f.counts(workspace.workspace).await;
    assert_eq!((counts.dispatched, counts.completed), (1, 0));
}
