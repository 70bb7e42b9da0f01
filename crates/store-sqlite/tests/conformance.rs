//! The suite that says what a store is, over a SQLite file and over one in memory.
#![allow(clippy::unwrap_used)]

use leasehold_store::{Clock, ManualClock, Store};
use leasehold_store_conformance::{Fixture, clock};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use std::sync::Arc;

fn options(clock: &ManualClock) -> SqliteOptions {
    SqliteOptions {
        clock: Clock::Manual(clock.clone()),
        ..SqliteOptions::default()
    }
}

async fn file_fixture() -> Fixture {
    let clock = clock();
    let folder = leasehold_testkit::temp_dir();
    let store = SqliteStore::open(folder.path().join("leasehold.db"), &options(&clock)).unwrap();
    store.schema_migrate().await.unwrap();
    Fixture::new(Arc::new(store), clock).guarded(folder)
}

async fn memory_fixture() -> Fixture {
    let clock = clock();
    let store = SqliteStore::open_in_memory(&options(&clock)).unwrap();
    store.schema_migrate().await.unwrap();
    Fixture::new(Arc::new(store), clock)
}

mod file {
    leasehold_store_conformance::suite!(crate::file_fixture);
}

mod memory {
    leasehold_store_conformance::suite!(crate::memory_fixture);
}

#[test]
fn a_file_agrees_with_the_model() {
    leasehold_store_conformance::model_test(file_fixture, 16);
}

#[test]
fn a_store_in_memory_agrees_with_the_model() {
    leasehold_store_conformance::model_test(memory_fixture, 48);
}
