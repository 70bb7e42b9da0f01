//! The buffers that finishing a node touches must not depend on the number of graphs.
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
const FILL: &str = include_str!("sql/graph_cost_fill.sql");
const SETTLE: &str = include_str!("sql/claim_cost_settle.sql");
const PREPARE: &str = include_str!("sql/read_cost_prepare.sql");
const EXPLAIN: &str = include_str!("sql/read_cost_explain.sql");

/// The execution that is measured.
const EXECUTION: &str = "md5('execution77')::uuid";

/// A statement with the types of its parameters, its arguments for one execution, the rows it finds and the pages it may touch.
type Measurement = (&'static str, &'static str, String, u64, u64);

fn measurements() -> Vec<Measurement> {
    let one = format!("ARRAY[{EXECUTION}]");
    vec![
        (
            include_str!("../sql/graph/lock_of_job.sql"),
            "bigint, text",
            "774, '200ms'".to_owned(),
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
            "uuid, smallint[], bigint",
            format!("{EXECUTION}, '{{1,2,3}}', 1000"),
            3,
            24,
        ),
        (
            include_str!("../sql/job/node_sources.sql"),
            "bigint[]",
            "'{774,775,776}'".to_owned(),
            1,
            40,
        ),
        (
            include_str!("../sql/node/outputs_of_many.sql"),
            "uuid[], smallint[]",
            format!("ARRAY[{EXECUTION}, {EXECUTION}], '{{1,2}}'"),
            2,
            16,
        ),
        (include_str!("../sql/node/open.sql"), "uuid[]", one, 3, 60),
        (
            include_str!("../sql/graph/due.sql"),
            "timestamptz, bigint, uuid[]",
            "NULL, 100, '{}'".to_owned(),
            0,
            6,
        ),
    ]
}

async fn filled(executions: i64) -> (Client, TestDatabase) {
    let database = support::database().await;
    let client = connect(&database).await;
    client.execute(CONFIGURE, &[&false, &"2s"]).await.unwrap();
    // Switches off triggers: limits of workspaces do not matter here.
    client
        .batch_execute("SET session_replication_role = replica")
        .await
        .unwrap();
    client.execute(FILL, &[&executions]).await.unwrap();
    client.batch_execute(SETTLE).await.unwrap();
    (client, database)
}

/// Returns the buffers of the second run of a statement: the first also sets hint bits and marks dead index entries.
async fn cost(client: &Client, (statement, types, arguments, rows, _): &Measurement) -> u64 {
    let prepare = PREPARE
        .replace("{types}", types)
        .replace("{statement}", &expand(statement, INCLUDES));
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
async fn cost_of_finishing_a_node_does_not_depend_on_the_number_of_graphs() {
    let (few, _few) = filled(100).await;
    let (many, _many) = filled(5_000).await;
    for measured in measurements() {
        let (few, many) = (cost(&few, &measured).await, cost(&many, &measured).await);
        let (statement, most) = (measured.0, measured.4);
        assert!(few <= most && many <= most, "{few}, {many}: {statement}");
    }
}
