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
use leasehold_testkit::eventually;
use std::sync::Arc;
use std::time::Duration;
use support::pace::promptly;
use support::raw::connect;
use tokio_postgres::Client;

const LOCK_ROWS: &str = include_str!("sql/lock_rows.sql");
const STATEMENT_BEGUN: &str = include_str!("sql/statement_begun.sql");
const LOCK_WAITS: &str = include_str!("sql/lock_waits.sql");

/// Returns a store, and a connection of an operator.
async fn open_fixture() -> (Arc<Fixture>, Client) {
    let (fixture, operator, _) = open_observed().await;
    (fixture, operator)
}

/// The same, and a connection that observes the locks.
async fn open_observed() -> (Arc<Fixture>, Client, Client) {
    let clock = clock();
    let database = support::database().await;
    let (operator, observer) = (connect(&database).await, connect(&database).await);
    let store = support::store(&database, clock.clone());
    let fixture = Fixture::new(Arc::new(store), clock).guarded(database);
    (Arc::new(fixture), operator, observer)
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

/// Waits until the store has begun a statement since the rows are locked. Statements that wait for no row are not among those of `wait_for_blocked`.
async fn wait_for_statement(observer: &Client, text: &str) {
    let begun = eventually(Duration::from_secs(60), async || {
        let row = observer.query_one(STATEMENT_BEGUN, &[&text]).await.unwrap();
        row.get::<_, bool>("begun")
    });
    assert!(begun.await, "{text} has not begun");
}

/// Waits until so many sessions of the database wait for a lock.
async fn wait_for_blocked(observer: &Client, sessions: i64) {
    let blocked = eventually(Duration::from_secs(60), async || {
        let row = observer.query_one(LOCK_WAITS, &[]).await.unwrap();
        row.get::<_, i64>("waiting") >= sessions
    });
    assert!(blocked.await, "no call waits for the lock");
}
