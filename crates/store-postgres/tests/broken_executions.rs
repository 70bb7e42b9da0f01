//! Executions whose rows somebody broke by hand: they do not keep others from timing out.
#![allow(clippy::unwrap_used)]

use crate::support;

use leasehold_store_conformance::broken_execution::BrokenExecutions;
use leasehold_store_conformance::{Fixture, clock};
use std::sync::Arc;
use support::raw::connect;
use tokio_postgres::Client;

const VERSION_DELETE: &str = include_str!("sql/version_delete.sql");
const GRAPH_LENGTHEN: &str = include_str!("sql/graph_lengthen.sql");

async fn write(client: &Client, statement: &str, id: uuid::Uuid) {
    assert_eq!(client.execute(statement, &[&id]).await.unwrap(), 1);
}

#[tokio::test]
async fn broken_execution_does_not_keep_others_from_timing_out() {
    let clock = clock();
    let database = support::database().await;
    let client = connect(&database).await;
    let fixture = || {
        let store = support::store(&database, clock.clone());
        Fixture::new(Arc::new(store), clock.clone())
    };
    let all = BrokenExecutions::start(&fixture()).await;
    write(&client, VERSION_DELETE, all.without_version.0).await;
    for graph in &all.unreadable {
        write(&client, GRAPH_LENGTHEN, graph.execution.0).await;
    }
    // A store that has no version in its cache.
    all.check(&fixture()).await;
}
