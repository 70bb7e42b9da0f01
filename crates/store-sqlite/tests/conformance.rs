//! The conformance suite, on a SQLite file and on an in-memory database. Each case leaves an intact file.

use crate::integrity;
use leasehold_store_conformance::{Fixture, clock};
use leasehold_testbed::{BackendKind, BackendOptions, TestBackend};
use leasehold_testkit::sized;

/// Checks the file of a case when it ends.
struct IntactFile(TestBackend);

impl Drop for IntactFile {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            integrity::check(&self.0.file());
        }
    }
}

async fn file_fixture() -> Fixture {
    let (fixture, backend) = fixture(BackendKind::Sqlite).await;
    fixture.guarded(IntactFile(backend))
}

async fn memory_fixture() -> Fixture {
    let (fixture, backend) = fixture(BackendKind::SqliteMemory).await;
    fixture.guarded(backend)
}

async fn fixture(kind: BackendKind) -> (Fixture, TestBackend) {
    let clock = clock();
    let options = BackendOptions::default().clock(clock.clone());
    let backend = TestBackend::with(kind, options).await;
    (Fixture::new(backend.store.clone(), clock), backend)
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
