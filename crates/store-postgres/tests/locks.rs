//! Rows that another transaction has locked delay their own request and nothing else.
#![allow(clippy::unwrap_used)]

mod claims;
mod heartbeats;
mod jobs;
mod keys;
mod named_locks;
mod pruning;
mod queues;
mod requests;
mod storm;

use crate::support;

use leasehold_store_conformance::{Fixture, clock};
use std::sync::Arc;
use std::time::Duration;
use support::raw::connect;
use tokio::time::timeout;
use tokio_postgres::Client;

const LOCK_ROWS: &str = include_str!("sql/lock_rows.sql");

/// How long a call may take that meets a locked row.
const PROMPT: Duration = Duration::from_millis(1_500);

/// Returns a store, and a connection of an operator.
async fn open_fixture() -> (Arc<Fixture>, Client) {
    let clock = clock();
    let database = support::database().await;
    let operator = connect(&database).await;
    let store = support::store(&database, clock.clone());
    let fixture = Fixture::new(Arc::new(store), clock).guarded(database);
    (Arc::new(fixture), operator)
}

/// Locks rows in an open transaction, as a forgotten `SELECT … FOR UPDATE` does.
async fn lock(operator: &Client, table: &str, condition: &str) {
    operator.batch_execute("BEGIN").await.unwrap();
    let statement = LOCK_ROWS
        .replace("{table}", table)
        .replace("{condition}", condition);
    let row = operator.query_one(&statement, &[]).await.unwrap();
    assert!(row.get::<_, i64>(0) > 0, "no row of {table} is locked");
}

async fn unlock(operator: &Client) {
    operator.batch_execute("ROLLBACK").await.unwrap();
}

fn id(id: impl std::fmt::Display) -> String {
    format!("id = '{id}'")
}

/// Returns what a call returns; fails if the call waits for the locked row.
async fn promptly<T>(call: impl Future<Output = T>) -> T {
    let answer = timeout(PROMPT, call).await;
    answer.expect("the call waits for a locked row of another request")
}
