//! A migrated PostgreSQL database for each test, and a store on it beside the one of the process under test.

use leasehold_store::Store;
use leasehold_store_postgres::{MIGRATIONS, PostgresOptions, PostgresStore};
use leasehold_testkit::{TestDatabase, TestPostgres};
use std::sync::Arc;

/// A database of the shared server, made from the migrated template.
pub(crate) async fn fresh() -> TestDatabase {
    let server = TestPostgres::shared();
    let hash = MIGRATIONS
        .iter()
        .fold(0i64, |hash, m| hash.rotate_left(7) ^ m.checksum());
    let template = server
        .template_database(
            &format!("leasehold_{:016x}", hash.cast_unsigned()),
            |url| async move {
                store(&url).schema_migrate().await.unwrap();
            },
        )
        .await;
    server.fresh_database(Some(&template)).await
}

/// A store on the database with that address.
pub(crate) fn store(url: &str) -> Arc<dyn Store> {
    Arc::new(PostgresStore::new(&PostgresOptions::new(url)).unwrap())
}

/// `host:port` of the server behind an address, for a proxy to stand in front of.
pub(crate) fn server_of(url: &str) -> &str {
    let (_, after) = url.split_once('@').unwrap();
    after.split_once('/').unwrap().0
}
