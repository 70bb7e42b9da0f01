//! A migrated database of its own for each test.

#[allow(dead_code, reason = "not every test works by hand")]
pub(crate) mod raw;

use leasehold_store::{Clock, ManualClock, Store};
use leasehold_store_postgres::{MIGRATIONS, PostgresOptions, PostgresStore};
use leasehold_testkit::{TestDatabase, TestPostgres};

/// A database made from the migrated template.
pub(crate) async fn database() -> TestDatabase {
    let server = TestPostgres::shared();
    let hash = MIGRATIONS
        .iter()
        .fold(0i64, |hash, m| hash.rotate_left(7) ^ m.checksum());
    let template = server
        .template_database(
            &format!("leasehold_{:016x}", hash.cast_unsigned()),
            |url| async move {
                let store = PostgresStore::new(&PostgresOptions::new(url)).unwrap();
                store.schema_migrate().await.unwrap();
            },
        )
        .await;
    server.fresh_database(Some(&template)).await
}

/// A store on that database that judges by `clock`.
#[allow(dead_code, reason = "not every test turns the clock")]
pub(crate) fn store(database: &TestDatabase, clock: ManualClock) -> PostgresStore {
    let options = PostgresOptions {
        clock: Clock::Manual(clock),
        ..PostgresOptions::new(database.url())
    };
    PostgresStore::new(&options).unwrap()
}
