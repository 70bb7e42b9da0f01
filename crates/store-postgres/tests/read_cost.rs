//! What reads that people wait for touch in a large database: as much as they show, however much there is.
#![allow(clippy::unwrap_used)]

use crate::explain;
use crate::support;

use leasehold_store::sql::expand;
use leasehold_store_postgres::INCLUDES;
use leasehold_testkit::TestDatabase;
use serde_json::Value;
use support::raw::connect;
use tokio_postgres::Client;

const SETTLE_IN: &str = include_str!("../sql/session/settle_in.sql");
const FILL_WORKSPACES: &str = include_str!("sql/claim_cost_fill_workspaces.sql");
const FILL_REQUESTS: &str = include_str!("sql/claim_cost_fill_requests.sql");
const FILL_EXECUTIONS: &str = include_str!("sql/read_cost_fill_executions.sql");
const SETTLE: &str = include_str!("sql/claim_cost_settle.sql");
const PREPARE: &str = include_str!("sql/read_cost_prepare.sql");
const EXPLAIN: &str = include_str!("sql/read_cost_explain.sql");
const FARTHEST: &str = include_str!("sql/read_cost_farthest.sql");
const PLACE: &str = include_str!("../sql/request/place.sql");
const EXECUTIONS: &str = include_str!("../sql/execution/list.sql");
const SUSPECTS: &str = include_str!("../sql/capacity/suspects.sql");
const OVERVIEW: &str = include_str!("../sql/workspace/overview.sql");
const OLDEST: &str = include_str!("../sql/request/oldest.sql");
const RUNNING: &str = include_str!("../sql/execution/list_of_running.sql");

/// Two workspaces with `each` requests in line and `ended` executions that ran before them.
async fn filled(each: i64, ended: i64) -> (Client, TestDatabase) {
    let database = support::database().await;
    let client = connect(&database).await;
    client.execute(SETTLE_IN, &[]).await.unwrap();
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

/// Buffers that one run of a statement touches, and the rows it returns.
async fn cost(client: &Client, types: &str, statement: &str, arguments: &str) -> (u64, u64) {
    let prepare = PREPARE
        .replace("{types}", types)
        .replace("{statement}", &expand(statement, INCLUDES));
    client.batch_execute(&prepare).await.unwrap();
    let explain = EXPLAIN.replace("{arguments}", arguments);
    // The second run: the first also marks what it finds to be dead.
    client.query_one(&explain, &[]).await.unwrap();
    let answer: Value = client.query_one(&explain, &[]).await.unwrap().get(0);
    client.batch_execute("DEALLOCATE read_cost").await.unwrap();
    let explained = explain::read(&answer);
    (explained.buffers, explained.rows)
}

async fn place_cost(client: &Client, up_to: u32) -> u64 {
    let row = client.query_one(FARTHEST, &[]).await.unwrap();
    let (id, workspace): (uuid::Uuid, uuid::Uuid) = (row.get("id"), row.get("workspace_id"));
    let types = "timestamptz, uuid, uuid, bigint, bigint";
    let arguments = format!("NULL, '{workspace}', '{id}', {up_to}, 1000");
    let (buffers, rows) = cost(client, types, PLACE, &arguments).await;
    assert_eq!(rows, 1);
    buffers
}

#[tokio::test]
async fn the_place_of_the_last_in_line_costs_what_is_counted_and_not_what_waits() {
    let (short, _short) = filled(1_000, 0).await;
    let (long, _long) = filled(20_000, 0).await;
    for up_to in [10, 500] {
        let (few, many) = (
            place_cost(&short, up_to).await,
            place_cost(&long, up_to).await,
        );
        // An entry a request, and the heap's page where it is not known to be visible to all.
        let most = 20 + u64::from(up_to) * 2;
        assert!(few <= most && many <= most, "{up_to}: {few}, {many}");
    }
}

#[tokio::test]
async fn a_page_of_executions_costs_what_it_shows() {
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

/// Buffers that an overview touches where `ended` executions ran before, and `each` requests wait in each of two workspaces.
async fn overview_cost(each: i64, ended: i64) -> u64 {
    let (client, _database) = filled(each, ended).await;
    let (buffers, rows) = cost(&client, "timestamptz, bigint", OVERVIEW, "NULL, 50").await;
    assert_eq!(rows, 2);
    buffers
}

#[tokio::test]
async fn an_overview_costs_what_it_shows_and_not_what_waits_or_ran() {
    let (few, many) = (
        overview_cost(10, 10).await,
        overview_cost(10_000, 20_000).await,
    );
    assert!(few <= 60 && many <= 60, "{few}, {many}");
}

/// Buffers that a look for drift touches, in the same two workspaces.
async fn drift_cost(each: i64, ended: i64) -> u64 {
    let (client, _database) = filled(each, ended).await;
    let (buffers, rows) = cost(&client, "uuid, bigint", SUSPECTS, "NULL, 500").await;
    assert_eq!(rows, 2);
    buffers
}

#[tokio::test]
async fn a_look_for_drift_costs_what_is_open_and_not_what_waits_or_ran() {
    let (few, many) = (drift_cost(10, 10).await, drift_cost(10_000, 20_000).await);
    assert!(few <= 80 && many <= 80, "{few}, {many}");
}

/// Buffers that the oldest ones' ages touch where `ended` executions ran before, and `each` requests wait in each of two workspaces.
async fn oldest_cost(each: i64, ended: i64) -> u64 {
    let (client, _database) = filled(each, ended).await;
    let (buffers, rows) = cost(&client, "timestamptz", OLDEST, "NULL").await;
    assert_eq!(rows, 1);
    buffers
}

#[tokio::test]
async fn the_oldest_are_found_without_reading_what_waits_or_ran() {
    let (few, many) = (oldest_cost(10, 10).await, oldest_cost(10_000, 10_000).await);
    assert!(few <= 100 && many <= 100, "{few}, {many}");
}
