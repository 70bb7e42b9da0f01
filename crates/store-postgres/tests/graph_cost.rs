//! What ending a node touches in a large database: what belongs to its graph, however many graphs there are.
#![allow(clippy::unwrap_used)]

use crate::explain;
use crate::support;

use leasehold_testkit::TestDatabase;
use serde_json::Value;
use support::raw::connect;
use tokio_postgres::Client;

const SETTLE_IN: &str = include_str!("../sql/session/settle_in.sql");
const FILL: &str = include_str!("sql/graph_cost_fill.sql");
const SETTLE: &str = include_str!("sql/claim_cost_settle.sql");
const PREPARE: &str = include_str!("sql/read_cost_prepare.sql");
const EXPLAIN: &str = include_str!("sql/read_cost_explain.sql");

/// The execution whose nodes are asked for.
const EXECUTION: &str = "md5('execution77')::uuid";

/// A statement with the types of its parameters, its arguments for one execution, the rows it finds and the pages it may touch.
type Asked = (&'static str, &'static str, String, u64, u64);

fn asked() -> Vec<Asked> {
    let one = format!("ARRAY[{EXECUTION}]");
    vec![
        (
            include_str!("../sql/graph/lock_of_job.sql"),
            "bigint",
            "774".to_owned(),
            1,
            40,
        ),
        (
            include_str!("../sql/job/lease_lock.sql"),
            "bigint[], integer[], bigint[]",
            "'{77}', '{}', '{}'".to_owned(),
            1,
            10,
        ),
        (
            include_str!("../sql/graph/params.sql"),
            "uuid",
            EXECUTION.to_owned(),
            1,
            12,
        ),
        (
            include_str!("../sql/node/outputs.sql"),
            "uuid, smallint[]",
            format!("{EXECUTION}, '{{1,2,3}}'"),
            3,
            24,
        ),
        (include_str!("../sql/node/open.sql"), "uuid[]", one, 3, 60),
        (
            include_str!("../sql/graph/due.sql"),
            "timestamptz, bigint",
            "NULL, 100".to_owned(),
            0,
            6,
        ),
    ]
}

async fn filled(executions: i64) -> (Client, TestDatabase) {
    let database = support::database().await;
    let client = connect(&database).await;
    client.execute(SETTLE_IN, &[]).await.unwrap();
    // What a workspace allows is not what is measured here.
    client
        .batch_execute("SET session_replication_role = replica")
        .await
        .unwrap();
    client.execute(FILL, &[&executions]).await.unwrap();
    client.batch_execute(SETTLE).await.unwrap();
    (client, database)
}

/// Buffers that the second run of a statement touches: the first also marks what it finds to be dead.
async fn cost(client: &Client, (statement, types, arguments, rows, _): &Asked) -> u64 {
    let prepare = PREPARE
        .replace("{types}", types)
        .replace("{statement}", statement);
    client.batch_execute(&prepare).await.unwrap();
    let explain = EXPLAIN.replace("{arguments}", arguments);
    client.query_one(&explain, &[]).await.unwrap();
    let answer: Value = client.query_one(&explain, &[]).await.unwrap().get(0);
    client.batch_execute("DEALLOCATE read_cost").await.unwrap();
    let explained = explain::read(&answer);
    assert_eq!(explained.rows, *rows, "{statement}");
    explained.buffers
}

#[tokio::test]
async fn ending_a_node_costs_the_same_however_many_graphs_there_are() {
    let (few, _few) = filled(100).await;
    let (many, _many) = filled(5_000).await;
    for asked in asked() {
        let (few, many) = (cost(&few, &asked).await, cost(&many, &asked).await);
        let (statement, most) = (asked.0, asked.4);
        assert!(few <= most && many <= most, "{few}, {many}: {statement}");
    }
}
