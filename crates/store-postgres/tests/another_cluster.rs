//! A database whose rows have transaction numbers of another cluster, as after a dump or a move: figures stay exact, every request can be claimed, and the
//! size of the history delays nothing.
#![allow(clippy::unwrap_used)]

use crate::support;

use leasehold_core::{ExecutionEnd, RequestStatus, WorkspaceId};
use leasehold_store::change::{ChangeCursor, ChangeStart};
use leasehold_store_conformance::factory::ok;
use leasehold_store_conformance::{Fixture, TestWorkspace, clock, drift_check};
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use leasehold_testkit::{TestDatabase, sized};
use serde_json::json;
use std::sync::Arc;
use support::raw::connect;
use tokio_postgres::Client;

const ANOTHER_CLUSTER: &str = include_str!("sql/another_cluster.sql");
const ENQUEUE: &str = include_str!("sql/enqueue.sql");
const FILL: &str = include_str!("sql/prune_load_requests.sql");
const TRIGGERS_OFF: &str = include_str!("sql/drift_triggers_off.sql");
const TRIGGERS_ON: &str = include_str!("sql/drift_triggers_on.sql");
const ROWS: &str = include_str!("sql/another_cluster_rows.sql");
const HOLD: &str = include_str!("sql/another_cluster_hold.sql");
/// Requests that one statement fills.
const FILL_MAX: i64 = 25_000;
/// Calls beside each other, each from a process of its own.
const PROCESSES: usize = 4;
const CALLS: usize = 20;

/// A store of a process that starts now.
fn process(database: &TestDatabase) -> Fixture {
    let options = PostgresOptions {
        max_connections: 4,
        ..PostgresOptions::new(database.url())
    };
    let store = PostgresStore::new(&options).unwrap();
    Fixture::new(Arc::new(store), clock())
}

async fn enqueue(client: &Client, workspace: &TestWorkspace) {
    let (workspace, definition) = (workspace.workspace.0, workspace.definition.0);
    let params = json!(null);
    client
        .query_one(ENQUEUE, &[&workspace, &definition, &params])
        .await
        .unwrap();
}

/// How many old events and requests there are, and a number that changes if one of their rows is written.
async fn old_rows(client: &Client) -> (i64, String) {
    let row = client.query_one(ROWS, &[]).await.unwrap();
    (row.get("rows"), row.get("places"))
}

#[tokio::test]
async fn what_the_other_cluster_had_not_folded_is_counted_and_claimed_once() {
    let database = support::database().await;
    let f = process(&database);
    let (workspace, other) = (f.workspace(2).await, f.workspace(2).await);
    f.enqueue_running(&workspace).await;
    f.enqueue(&workspace, 3).await;
    f.drain(1).await;
    let client = connect(&database).await;
    // No fold sees these before the move.
    for _ in 0..2 {
        enqueue(&client, &workspace).await;
        enqueue(&client, &other).await;
    }
    drop(f);
    client.batch_execute(ANOTHER_CLUSTER).await.unwrap();

    let f = process(&database);
    let counts = f.counts(workspace.workspace).await;
    let figures = (counts.pending, counts.claimed, counts.dispatched);
    assert_eq!(figures, (4, 1, 1));
    enqueue(&client, &workspace).await;
    let claimed = f.drain(10).await.requests;
    assert_eq!(claimed.len(), 2, "two of the other workspace");
    f.set_limit(workspace.workspace, 4).await;
    let claimed = f.drain(10).await.requests;
    assert_eq!(claimed.len(), 2);
    let end = ExecutionEnd::Completed;
    let status = f.finish(claimed[0].execution, end).await;
    assert_eq!(status, RequestStatus::Completed);
    assert_eq!(f.drain(10).await.requests.len(), 1);
    let counts = f.counts(workspace.workspace).await;
    let open = (counts.pending, counts.claimed, counts.dispatched);
    assert_eq!((open, counts.completed), ((2, 3, 1), 1));
    drift_check::none(&*f.store).await;
}

/// Inserts this many completed requests with their events, without the triggers.
async fn fill_completed(client: &Client, of: &TestWorkspace, count: i64) {
    let (id, definition, version) = (of.workspace.0, of.definition.0, of.version.0);
    client.batch_execute(TRIGGERS_OFF).await.unwrap();
    for from in (0..count).step_by(usize::try_from(FILL_MAX).unwrap()) {
        client
            .execute(FILL, &[&from, &FILL_MAX, &id, &definition, &version])
            .await
            .unwrap();
    }
    client.batch_execute(TRIGGERS_ON).await.unwrap();
}

/// Counts the events of a workspace after a cursor.
async fn changes_after(f: &Fixture, cursor: ChangeCursor, of: WorkspaceId) -> usize {
    let (mut start, mut read) = (ChangeStart::After(cursor), 0);
    loop {
        let page = ok(f.store.change_list(&start, Some(of), 100).await);
        read += page.changes.len();
        if !page.more {
            return read;
        }
        start = ChangeStart::After(page.cursor);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn large_history_of_another_cluster_delays_no_call() {
    let database = support::database().await;
    let f = process(&database);
    let (finished, open) = (f.workspace(20).await, f.workspace(200).await);
    let client = connect(&database).await;
    let ended = sized(50_000, 500_000);
    fill_completed(&client, &finished, ended).await;
    f.enqueue(&open, 10).await;
    assert_eq!(f.drain(10).await.requests.len(), 10);
    drop(f);
    client.batch_execute(ANOTHER_CLUSTER).await.unwrap();
    let before = old_rows(&client).await;
    // An open transaction has written a request and locked an event: who writes the history, or locks the table, waits for it.
    let holder = connect(&database).await;
    holder.batch_execute("BEGIN").await.unwrap();
    assert_eq!(holder.execute(HOLD, &[]).await.unwrap(), 1);

    let start = process(&database);
    let start = start.store.change_list(&ChangeStart::Now, None, 1).await;
    let start = ok(start).cursor;
    let calls = (0..PROCESSES).map(|_| {
        let f = process(&database);
        tokio::spawn(async move {
            for _ in 0..CALLS {
                f.enqueue(&open, 1).await;
            }
        })
    });
    let mut calls: Vec<_> = calls.collect();
    let caller = connect(&database).await;
    calls.push(tokio::spawn(async move {
        for _ in 0..CALLS {
            enqueue(&caller, &open).await;
        }
    }));
    let added = (PROCESSES + 1) * CALLS;
    let f = process(&database);
    let mut claimed = 0;
    while claimed < added {
        claimed += f.drain(10).await.requests.len();
    }
    for call in calls {
        call.await.unwrap();
    }
    holder.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(
        old_rows(&client).await,
        before,
        "the history is not written"
    );
    let counts = f.counts(open.workspace).await;
    assert_eq!((counts.pending, counts.claimed), (0, 10 + added as u64));
    let counts = f.counts(finished.workspace).await;
    assert_eq!(counts.completed, ended.cast_unsigned());
    drift_check::none(&*f.store).await;
    let read = changes_after(&f, start, open.workspace).await;
    assert_eq!(read, 2 * added, "each event since is read once");
}
