//! The conformance suite over PostgreSQL.
#![allow(clippy::unwrap_used)]

mod support;

use leasehold_store_conformance::{Fixture, clock, suite};
use std::sync::Arc;

async fn fixture() -> Fixture {
    let clock = clock();
    let database = support::database().await;
    let store = support::store(&database, clock.clone());
    Fixture::new(Arc::new(store), clock).guarded(database)
}

suite!(crate::fixture);

#[test]
fn random_operations_agree_with_the_model() {
    leasehold_store_conformance::model_test(fixture, 40);
}
