//! The suite over the model itself: a case that the model does not pass is a wrong case, or the model is wrong.

use leasehold_store_conformance::model::{Model, model_test};
use leasehold_store_conformance::{Fixture, clock, suite};
use std::sync::Arc;

async fn fixture() -> Fixture {
    let clock = clock();
    Fixture::new(Arc::new(Model::new(clock.clone())), clock)
}

suite!(crate::fixture);

#[test]
fn the_model_agrees_with_itself() {
    model_test(fixture, 64);
}
