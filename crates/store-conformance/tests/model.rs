//! Runs the suite on the model itself: if a case fails here, the case or the model is wrong.

use leasehold_store_conformance::model::{Model, model_test};
use leasehold_store_conformance::{Fixture, clock, suite};
use std::sync::Arc;

async fn fixture() -> Fixture {
    let clock = clock();
    Fixture::new(Arc::new(Model::new(clock.clone())), clock)
}

suite!(crate::fixture);

#[test]
fn model_equals_itself() {
    model_test(fixture, 64);
}
