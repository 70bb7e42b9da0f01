//! Lists of a queue cost what the queue has, a fold costs what is new, and counts after a burst cost the same as before it.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use crate::explain;
use crate::support;

use leasehold_store::sql::expand;
use leasehold_store_conformance::{Fixture, clock};
use leasehold_store_postgres::INCLUDES;
use leasehold_testbed::TestWorkspace;
use serde_json::Value;
use std::sync::Arc;
use support::raw::connect;
use tokio_postgres::Client;

const CONFIGURE: &str = include_str!("../sql/session/configure.sql");
const FILL: &str = include_str!("sql/queue_list_fill.sql");
const QUEUES: &str = include_str!("sql/queue_list_queues.sql");
const FILL_WORKSPACES: &str = include_str!("sql/claim_cost_fill_workspaces.sql");
const SETTLE: &str = include_str!("sql/claim_cost_settle.sql");
const SNAPSHOT: &str = include_str!("sql/claim_cost_snapshot.sql");
const PREPARE: &str = include_str!("sql/read_cost_prepare.sql");
const EXPLAIN: &str = include_str!("sql/read_cost_explain.sql");
const FOLD_DELTAS: &str = include_str!("sql/fold_deltas.sql");
const FOLD_EXPLAIN: &str = include_str!("sql/fold_explain.sql");

const ALL: &str = include_str!("../sql/job/list_of_queue.sql");
const COMPLETED: &str = include_str!("../sql/job/list_completed_of_queue.sql");
const FAILED: &str = include_str!("../sql/job/list_failed_of_queue.sql");
const QUEUED: &str = include_str!("../sql/job/list_queued_of_queue.sql");
const RUNNING: &str = include_str!("../sql/job/list_running_of_queue.sql");
const COUNTS: &str = include_str!("../sql/request/counts.sql");
const JOB_COUNTS: &str = include_str!("../sql/job/counts.sql");

/// Returns the buffers of the second run of a list of 20 jobs, and how many it returned.
async fn cost(client: &Client, statement: &str, queue: i32) -> (u64, u64) {
    let types = "timestamptz, bigint, integer, bigint";
    let arguments = format!("NULL, {}, {queue}, 20", i64::MAX);
    cost_with(client, statement, types, &arguments).await
}

/// Returns the buffers and the rows of the second run of a statement.
async fn cost_with(client: &Client, statement: &str, types: &str, arguments: &str) -> (u64, u64) {
    let prepare = PREPARE
        .replace("{types}", types)
        .replace("{statement}", &expand(statement, INCLUDES));
    client.batch_execute(&prepare).await.unwrap();
    let explain = EXPLAIN.replace("{arguments}", arguments);
    client.query_one(&explain, &[]).await.unwrap();
    let answer: Value = client.query_one(&explain, &[]).await.unwrap().get(0);
    client.batch_execute("DEALLOCATE read_cost").await.unwrap();
    let explained = explain::read(&answer);
    (explained.buffers, explained.rows)
}

#[tokio::test]
async fn list_of_a_small_queue_does_not_read_the_jobs_of_others() {
    let database = support::database().await;
    let client = connect(&database).await;
    client.execute(CONFIGURE, &[&false, &"2s"]).await.unwrap();
    client.execute(FILL, &[&60_000_i64]).await.unwrap();
    client.batch_execute(SETTLE).await.unwrap();
    let queues = client.query_one(QUEUES, &[]).await.unwrap();
    let (large, small): (i32, i32) = (queues.get("large"), queues.get("small"));
    for (statement, in_large, in_small) in [(ALL, 20, 20), (COMPLETED, 20, 20), (FAILED, 20, 0)] {
        for (queue, expected) in [(large, in_large), (small, in_small)] {
            let (buffers, rows) = cost(&client, statement, queue).await;
            assert_eq!(rows, expected, "{statement}");
            // At most 1,000 jobs of all queues, each in two tables, and those of the queue.
            assert!(buffers < 6_500, "{buffers} buffers: {statement}");
        }
    }
    for statement in [QUEUED, RUNNING] {
        let (buffers, _) = cost(&client, statement, small).await;
        assert!(buffers < 300, "{buffers} buffers: {statement}");
    }
    let types = "timestamptz, integer";
    let (in_large, _) = cost_with(&client, JOB_COUNTS, types, &format!("NULL, {large}")).await;
    let (in_small, _) = cost_with(&client, JOB_COUNTS, types, &format!("NULL, {small}")).await;
    println!("counts: {in_large} buffers of a large queue, {in_small} of a small one");
    assert!(in_small < 400, "{in_small} buffers");
}

#[tokio::test]
async fn fold_under_an_old_snapshot_reads_no_dead_deltas() {
    let database = support::database().await;
    let (client, reader) = (connect(&database).await, connect(&database).await);
    client.execute(CONFIGURE, &[&false, &"2s"]).await.unwrap();
    let (first, last, limit, paused) = (0i64, 0i64, 10i32, false);
    let workspace: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
        [&first, &last, &limit, &paused];
    client.execute(FILL_WORKSPACES, &workspace).await.unwrap();
    client.batch_execute(SETTLE).await.unwrap();
    reader.batch_execute(SNAPSHOT).await.unwrap();
    client.batch_execute(FOLD_DELTAS).await.unwrap();
    // The first run after that also reads catalogs.
    client.query_one(FOLD_EXPLAIN, &[]).await.unwrap();
    let answer: Value = client.query_one(FOLD_EXPLAIN, &[]).await.unwrap().get(0);
    let buffers = explain::read(&answer).buffers;
    // Reading the dead deltas takes over 400.
    assert!(buffers < 80, "{buffers} buffers");
    reader.batch_execute("COMMIT").await.unwrap();
}

/// While nothing is claimed, only the event folder folds, after up to 16 seconds. Counts must not read a burst of other workspaces each time.
#[tokio::test]
async fn counts_after_a_burst_without_claims_read_only_what_is_new() {
    let clock = clock();
    let database = support::database().await;
    let client = connect(&database).await;
    client.execute(CONFIGURE, &[&false, &"2s"]).await.unwrap();
    let store = support::store(&database, clock.clone());
    let f = Fixture::new(Arc::new(store), clock);
    let (busy, quiet) = (f.workspace(10).await, f.workspace(10).await);
    f.enqueue(&quiet, 3).await;
    for _ in 0..20 {
        f.enqueue(&busy, 1_000).await;
    }
    let burst = counts_cost(&client, &quiet).await;
    assert!(burst > 300, "the burst is not folded: {burst} buffers");
    assert_eq!(f.counts(quiet.workspace).await.pending, 3);
    let folded = counts_cost(&client, &quiet).await;
    println!("counts: {burst} buffers before, {folded} after the first read");
    assert!(folded < 60, "{folded} buffers");
    assert_eq!(f.counts(busy.workspace).await.pending, 20_000);
}

/// Returns the buffers that the counts of a workspace touch.
async fn counts_cost(client: &Client, of: &TestWorkspace) -> u64 {
    let prepare = PREPARE
        .replace("{types}", "uuid")
        .replace("{statement}", &expand(COUNTS, INCLUDES));
    client.batch_execute(&prepare).await.unwrap();
    let explain = EXPLAIN.replace("{arguments}", &format!("'{}'", of.workspace));
    client.query_one(&explain, &[]).await.unwrap();
    let answer: Value = client.query_one(&explain, &[]).await.unwrap().get(0);
    client.batch_execute("DEALLOCATE read_cost").await.unwrap();
    explain::read(&answer).buffers
}
