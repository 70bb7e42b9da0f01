//! PostgreSQL for tests: databases copied from a migrated template, and stores on them.

use crate::backend::{BackendOptions, Storage};
use leasehold_store::{Clock, Store};
use leasehold_store_postgres::{PostgresOptions, PostgresStore, schema_checksum};
use leasehold_testkit::{TestDatabase, TestPostgres};
use std::sync::Arc;

/// Creates a database on the shared server from the migrated template.
///
/// # Panics
/// When PostgreSQL is not installed or the template cannot be migrated.
pub async fn database() -> TestDatabase {
    let template = template().await;
    TestPostgres::shared().fresh_database(Some(&template)).await
}

async fn template() -> String {
    let build = |url: String| async move {
        store(&url).schema_migrate().await.unwrap();
    };
    let name = template_name();
    TestPostgres::shared().template_database(&name, build).await
}

/// Opens a store with default options on the database at `url`, like another process.
///
/// # Panics
/// When the address is invalid.
pub fn store(url: &str) -> Arc<dyn Store> {
    store_with_clock(url, Clock::Database)
}

pub(crate) fn store_with_clock(url: &str, clock: Clock) -> Arc<dyn Store> {
    let options = PostgresOptions {
        clock,
        ..PostgresOptions::new(url)
    };
    Arc::new(PostgresStore::new(&options).unwrap())
}

/// Returns `host:port` of the server in a database address, for a proxy in front of it.
///
/// # Panics
/// When the address has no host.
pub fn server_of(url: &str) -> &str {
    let (_, authority) = url.split_once("://").expect("the address has no scheme");
    let authority = authority.split(['/', '?']).next().unwrap_or(authority);
    authority.rsplit('@').next().unwrap_or(authority)
}

/// Returns the template's name, which changes with the schema, so that an old template is never used.
fn template_name() -> String {
    format!("leasehold_{:016x}", schema_checksum().cast_unsigned())
}

pub(crate) async fn open(options: &BackendOptions) -> (Arc<dyn Store>, Storage) {
    let database = if options.reuse {
        let template = template().await;
        TestPostgres::shared().reused_database(&template).await
    } else {
        database().await
    };
    let url = match &options.proxy {
        Some(proxy) => database.url().replace(server_of(database.url()), proxy),
        None => database.url().to_owned(),
    };
    let options = PostgresOptions {
        clock: options.store_clock(),
        notify: options.notify,
        max_connections: options.connections,
        connect_timeout: options.connect_timeout,
        ..PostgresOptions::new(url)
    };
    let store = PostgresStore::new(&options).unwrap();
    (Arc::new(store), Storage::Database(database))
}
