//! A separate migrated database for each test.

#[allow(dead_code, reason = "not every test needs a limit")]
pub(crate) mod pace;
#[allow(dead_code, reason = "not every test needs a raw connection")]
pub(crate) mod raw;

use leasehold_store::{Clock, ManualClock};
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use leasehold_testkit::TestDatabase;

pub(crate) use leasehold_testbed::postgres::database;

/// Returns a store on this database with a manual clock.
#[allow(dead_code, reason = "not every test needs a manual clock")]
pub(crate) fn store(database: &TestDatabase, clock: ManualClock) -> PostgresStore {
    let options = PostgresOptions {
        clock: Clock::Manual(clock),
        ..PostgresOptions::new(database.url())
    };
    PostgresStore::new(&options).unwrap()
}
