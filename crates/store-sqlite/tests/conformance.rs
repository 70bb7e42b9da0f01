//! The conformance suite, on a SQLite file and on an in-memory database.

use leasehold_store_conformance::{Fixture, clock};
use leasehold_testbed::{BackendKind, BackendOptions, TestBackend};
use leasehold_testkit::sized;

async fn fixture(kind: BackendKind) -> Fixture {
    let clock = clock();
    let options = BackendOptions::default().clock(clock.clone());
    let backend = TestBackend::with(kind, options).await;
    Fixture::new(backend.store.clone(), clock).guarded(backend)
}

async fn file_fixture() -> Fixture {
    fixture(BackendKind::Sqlite).await
}

async fn memory_fixture() -> Fixture {
    fixture(BackendKind::SqliteMemory).await
}

mod file {
    leasehold_store_conformance::suite!(crate::conformance::file_fixture);
}

mod memory {
    leasehold_store_conformance::suite!(crate::conformance::memory_fixture);
}

#[test]
fn file_store_matches_the_model() {
    leasehold_store_conformance::model_test(file_fixture, sized(4, 16));
}

#[test]
fn memory_store_matches_the_model() {
    leasehold_store_conformance::model_test(memory_fixture, sized(8, 48));
}
