//! The statements and triggers of this program on tables to which a newer one has added columns.
#![allow(clippy::unwrap_used)]

use leasehold_store::{Clock, SchemaStore};
use leasehold_store_conformance::{Fixture, clock};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use leasehold_testkit::sized;
use rusqlite::Connection;
use std::sync::Arc;

/// A store that has prepared statements before every table gets a column.
async fn fixture() -> Fixture {
    let (clock, dir) = (clock(), leasehold_testkit::temp_dir());
    let file = dir.path().join("leasehold.db");
    let options = SqliteOptions {
        clock: Clock::Manual(clock.clone()),
        ..SqliteOptions::default()
    };
    let store = SqliteStore::open(&file, &options).unwrap();
    store.schema_migrate().await.unwrap();
    let fixture = Fixture::new(Arc::new(store), clock).guarded(dir);
    fixture.dump().await;
    add_columns(&Connection::open(&file).unwrap());
    fixture
}

fn add_columns(connection: &Connection) {
    let list = include_str!("sql/column_add.sql");
    let mut list = connection.prepare(list).unwrap();
    let additions = list.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let additions: Vec<_> = additions.map(Result::unwrap).collect();
    for addition in additions {
        connection.execute_batch(&addition).unwrap();
    }
}

#[test]
fn random_operations_agree_with_the_model_although_every_table_has_a_newer_column() {
    leasehold_store_conformance::model_test(fixture, sized(2, 16));
}
