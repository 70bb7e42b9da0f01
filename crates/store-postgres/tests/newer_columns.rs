//! The statements and functions of this program on tables to which a newer one has added columns.

use crate::support;
use leasehold_store_conformance::{Fixture, clock};
use leasehold_testkit::sized;
use std::sync::Arc;

/// A store that has prepared statements before every table gets a column.
async fn fixture() -> Fixture {
    let clock = clock();
    let database = support::database().await;
    let client = support::raw::connect(&database).await;
    let store = support::store(&database, clock.clone());
    let fixture = Fixture::new(Arc::new(store), clock).guarded(database);
    fixture.dump().await;
    let add = include_str!("sql/column_add.sql");
    client.batch_execute(add).await.unwrap();
    fixture
}

#[test]
fn random_operations_agree_with_the_model_although_every_table_has_a_newer_column() {
    leasehold_store_conformance::model_test(fixture, sized(3, 20));
}
