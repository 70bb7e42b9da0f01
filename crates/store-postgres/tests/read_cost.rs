//! The buffers that interactive reads touch must depend on what they return, not on the size of the database.
#![allow(clippy::unwrap_used)]

use crate::explain;
use crate::support;

use leasehold_store::sql::expand;
use leasehold_store_postgres::INCLUDES;
use leasehold_testkit::TestDatabase;
use serde_json::Value;
use support::raw::connect;
use tokio_postgres::Client;

const CONFIGURE: &str = include_str!("../sql/session/configure.sql");
const FILL_WORKSPACES: &str = include_str!("sql/claim_cost_fill_workspaces.sql");
const FILL_REQUESTS: &str = include_str!("sql/claim_cost_fill_requests.sql");
const FILL_EXECUTIONS: &str = include_str!("sql/read_cost_fill_executions.sql");
const SETTLE: &str = include_str!("sql/claim_cost_settle.sql");
const PREPARE: &str = include_str!("sql/read_cost_prepare.sql");
const EXPLAIN: &str = include_str!("sql/read_cost_explain.sql");
const FARTHEST: &str = include_str!("sql/read_cost_farthest.sql");
const POSITION: &str = include_str!("../sql/request/position.sql");
const EXECUTIONS: &str = include_str!("../sql/execution/list.sql");
const SUSPECTS: &str = include_str!("../sql/drift/find_suspects.sql");
const OVERVIEW: &str = include_str!("../sql/workspace/overview.sql");
const OLDEST: &str = include_str!("../sql/request/oldest.sql");
const RUNNING: &str = include_str!("../sql/execution/list_of_running.sql");

const WINDOW: &str = include_str!("../sql/change/window.sql");
const WINDOW_END: &str = include_str!("../sql/change/window_end.sql");
const DEPENDENT: &str = include_str!("../sql/change/dependent.sql");
const HISTORY: &str = include_str!("../sql/change/history.sql");
const HISTORY_END: &str = include_str!("../sql/change/history_end.sql");
const OF_WORKSPACE: &str = include_str!("../sql/change/history_of_workspace.sql");
const EVENTS: &str = include_str!("sql/read_cost_fill_events.sql");

/// Creates two workspaces with `each` due requests and `ended` executions that ran before.
async fn filled(each: i64, ended: i64) -> (Client, TestDatabase) {
    let database = support::database().await;
    let client = connect(&database).await;
    client.execute(CONFIGURE, &[&false, &"2s"]).await.unwrap();
    let (first, last, limit, paused) = (0i64, 1i64, 100i32, false);
    client
        .execute(FILL_WORKSPACES, &[&first, &last, &limit, &paused])
        .await
        .unwrap();
    let (all, from, workspaces, seconds, refusals) = (2 * each, 0i64, 2i64, 0i64, 0i32);
    client
        .execute(
            FILL_REQUESTS,
            &[&all, &from, &first, &workspaces, &seconds, &refusals],
        )
        .await
        .unwrap();
    client.execute(FILL_EXECUTIONS, &[&ended]).await.unwrap();
    client.batch_execute(SETTLE).await.unwrap();
    (client, database)
}

/// Returns the buffers that one run of a statement touches, and the rows it returns.
async fn cost(client: &Client, types: &str, statement: &str, arguments: &str) -> (u64, u64) {
    let prepare = PREPARE
        .replace("{types}", types)
        .replace("{statement}", &expand(statement, INCLUDES));
    client.batch_execute(&prepare).await.unwrap();
    let explain = EXPLAIN.replace("{arguments}", arguments);
    // Measures the second run: the first also sets hint bits and marks dead index entries.
    client.query_one(&explain, &[]).await.unwrap();
    let answer: Value = client.query_one(&explain, &[]).await.unwrap().get(0);
    client.batch_execute("DEALLOCATE read_cost").await.unwrap();
    let explained = explain::read(&answer);
    (explained.buffers, explained.rows)
}

async fn position_cost(client: &Client, up_to: u32) -> u64 {
    let row = client.query_one(FARTHEST, &[]).await.unwrap();
    let (id, workspace): (uuid::Uuid, uuid::Uuid) = (row.get("id"), row.get("workspace_id"));
    let types = "timestamptz, uuid, uuid, bigint, bigint";
    let arguments = format!("NULL, '{workspace}', '{id}', {up_to}, 1000");
    let (buffers, rows) = cost(client, types, POSITION, &arguments).await;
    assert_eq!(rows, 1);
    buffers
}

#[tokio::test]
async fn position_of_last_request_costs_up_to_the_bound_whatever_the_backlog() {
    let (short, _short) = filled(1_000, 0).await;
    let (long, _long) = filled(20_000, 0).await;
    for up_to in [10, 500] {
        let (few, many) = (
            position_cost(&short, up_to).await,
            position_cost(&long, up_to).await,
        );
        // One index entry for each request, and its heap page unless the visibility map covers it.
        let most = 20 + u64::from(up_to) * 2;
        assert!(few <= most && many <= most, "{up_to}: {few}, {many}");
    }
}

#[tokio::test]
async fn page_of_executions_costs_what_it_returns() {
    let (client, _database) = filled(10, 20_000).await;
    let row = client.query_one(FARTHEST, &[]).await.unwrap();
    let workspace: uuid::Uuid = row.get("workspace_id");
    let types = "uuid, bigint, text, uuid, bigint";
    for (statement, status, before, page) in [
        (EXECUTIONS, "NULL", i64::MAX, 10),
        (EXECUTIONS, "NULL", 5_000, 10),
        (RUNNING, "'RUNNING'", i64::MAX, 3),
    ] {
        let arguments = format!("'{workspace}', {before}, {status}, NULL, 10");
        let (buffers, rows) = cost(&client, types, statement, &arguments).await;
        assert_eq!(rows, page);
        assert!(buffers <= 30, "{buffers} for {status} before {before}");
    }
}

/// Returns the buffers that an overview touches with `ended` executions, and `each` pending requests in each of two workspaces.
async fn overview_cost(each: i64, ended: i64) -> u64 {
    let (client, _database) = filled(each, ended).await;
    let (buffers, rows) = cost(&client, "timestamptz, bigint", OVERVIEW, "NULL, 50").await;
    assert_eq!(rows, 2);
    buffers
}

#[tokio::test]
async fn overview_cost_does_not_depend_on_backlog_or_history() {
    let (few, many) = (
        overview_cost(10, 10).await,
        overview_cost(10_000, 20_000).await,
    );
    assert!(few <= 60 && many <= 60, "{few}, {many}");
}

/// Returns the buffers that a drift check touches, in the same two workspaces.
async fn drift_cost(each: i64, ended: i64) -> u64 {
    let (client, _database) = filled(each, ended).await;
    let (buffers, rows) = cost(&client, "uuid, bigint", SUSPECTS, "NULL, 500").await;
    assert_eq!(rows, 2);
    buffers
}

#[tokio::test]
async fn drift_check_cost_does_not_depend_on_backlog_or_history() {
    let (few, many) = (drift_cost(10, 10).await, drift_cost(10_000, 20_000).await);
    assert!(few <= 80 && many <= 80, "{few}, {many}");
}

/// Returns the buffers that the query for the oldest requests touches, in the same two workspaces.
async fn oldest_cost(each: i64, ended: i64) -> u64 {
    let (client, _database) = filled(each, ended).await;
    let (buffers, rows) = cost(&client, "timestamptz", OLDEST, "NULL").await;
    assert_eq!(rows, 1);
    buffers
}

#[tokio::test]
async fn oldest_requests_cost_does_not_depend_on_backlog_or_history() {
    let (few, many) = (oldest_cost(10, 10).await, oldest_cost(10_000, 10_000).await);
    assert!(few <= 100 && many <= 100, "{few}, {many}");
}

/// Returns the buffers that the reads of the change stream touch for a workspace without events, with `events` of others: in the history and in windows.
async fn change_costs(events: i64) -> Vec<(&'static str, u64)> {
    let (client, _database) = filled(10, 0).await;
    client.execute(EVENTS, &[&events]).await.unwrap();
    client.batch_execute(SETTLE).await.unwrap();
    let (scan, nil, own) = (1_000, uuid::Uuid::nil(), uuid::Uuid::from_u128(7));
    // Snapshots that see nothing and everything, and the end of a window of `scan` events: each event is a transaction.
    let (nothing, all, window) = ("3:3:", "9000000000:9000000000:", "1001000:1001000:");
    // No event has transaction numbers of another cluster.
    let history = format!("'{nothing}', '{nil}', 0, 100, {scan}, 0");
    let reads = [
        (
            "history",
            "text, uuid, bigint, bigint, bigint, bigint",
            HISTORY,
            history.clone(),
        ),
        (
            "end",
            "uuid, bigint, bigint",
            HISTORY_END,
            format!("'{nil}', 0, {scan}"),
        ),
        (
            "workspace",
            "text, uuid, bigint, bigint, bigint, bigint, uuid",
            OF_WORKSPACE,
            format!("{history}, '{own}'"),
        ),
        (
            "window end",
            "text, text, bigint",
            WINDOW_END,
            format!("'1000000:1000000:', '{all}', {scan}"),
        ),
        (
            "window",
            "text, text, bigint, bigint, uuid",
            WINDOW,
            format!("'1000000:1000000:', '{window}', 0, 100, '{own}'"),
        ),
        (
            "dependent",
            "text, text",
            DEPENDENT,
            format!("'1000000:1000000:', '{window}'"),
        ),
    ];
    let mut costs = Vec::new();
    for (name, types, statement, arguments) in reads {
        costs.push((name, cost(&client, types, statement, &arguments).await.0));
    }
    costs
}

#[tokio::test]
async fn change_reads_cost_what_they_scan_whatever_the_history() {
    let (few, many) = (change_costs(2_000).await, change_costs(40_000).await);
    for ((name, few), (_, many)) in few.into_iter().zip(many) {
        // For each of 1,000 events an index entry and a heap page, for `dependent` also those of its request.
        assert!(
            many <= 8_000 && many <= 2 * few + 100,
            "{name}: {few}, {many}"
        );
    }
}
