//! A migrated database of its own for each test.

#[allow(dead_code, reason = "not every test works by hand")]
pub(crate) mod raw;

use leasehold_store::{Clock, ManualClock};
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use leasehold_testkit::TestDatabase;

pub(crate) use leasehold_testbed::postgres::database;

/// A store on that database that judges by `clock`.
#[allow(dead_code, reason = "not every test turns the clock")]
pub(crate) fn store(database: &TestDatabase, clock: ManualClock) -> PostgresStore {
    let options = PostgresOptions {
        clock: Clock::Manual(clock),
        ..PostgresOptions::new(database.url())
    };
    PostgresStore::new(&options).unwrap()
}
