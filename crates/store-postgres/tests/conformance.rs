//! The conformance suite over PostgreSQL.

use leasehold_store_conformance::{Fixture, clock, suite};
use leasehold_testbed::{BackendKind, BackendOptions, TestBackend};
use leasehold_testkit::sized;

async fn fixture() -> Fixture {
    let clock = clock();
    let options = BackendOptions {
        connections: 10,
        reuse: true,
        ..BackendOptions::default().clock(clock.clone())
    };
    let backend = TestBackend::with(BackendKind::Postgres, options).await;
    Fixture::new(backend.store.clone(), clock).guarded(backend)
}

suite!(crate::conformance::fixture);

#[test]
fn random_operations_agree_with_the_model() {
    leasehold_store_conformance::model_test(fixture, sized(10, 40));
}
