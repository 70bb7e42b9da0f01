//! PostgreSQL for tests: databases copied from a migrated template, and stores on them.

use crate::backend::{BackendOptions, Storage};
use leasehold_store::{Clock, Store};
use leasehold_store_postgres::{Pooler, PostgresOptions, PostgresStore, schema_checksum};
use leasehold_testkit::{POOLER_VARIABLE, PgBouncer, TestDatabase, TestPostgres};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// How a store of this process reaches the server.
#[derive(Clone, Debug)]
pub struct Route {
    /// The address of the database, or of the same database behind a pooler.
    pub url: String,
    /// What is between the store and the server.
    pub pooler: Pooler,
}

/// Returns the way to the database at `url`: through a PgBouncer in transaction mode if [`POOLER_VARIABLE`] is set, otherwise directly.
///
/// # Panics
/// When PgBouncer is not installed.
pub fn route(url: &str) -> Route {
    /// By the address of the server; they end with the process.
    static POOLERS: LazyLock<Mutex<HashMap<String, PgBouncer>>> = LazyLock::new(Mutex::default);
    if isolation().is_none() {
        return Route {
            url: url.to_owned(),
            pooler: Pooler::None,
        };
    }
    let server = server_of(url);
    let mut poolers = POOLERS.lock().unwrap_or_else(PoisonError::into_inner);
    let pooler = poolers
        .entry(server.to_owned())
        .or_insert_with(|| PgBouncer::start(server, &[]));
    Route {
        url: url.replace(server, &pooler.address()),
        pooler: Pooler::Transaction {
            // Debian's PgBouncer does not know them.
            prepared_statements: false,
        },
    }
}

/// The default isolation level that databases behind a pooler have.
fn isolation() -> Option<String> {
    std::env::var(POOLER_VARIABLE).ok()
}

/// Sets the default isolation level of the database if tests run through a pooler.
async fn set_isolation(database: &TestDatabase) {
    if let Some(isolation) = isolation() {
        database.set_default_isolation(&isolation).await;
    }
}

/// Creates a database on the shared server from the migrated template.
///
/// # Panics
/// When PostgreSQL is not installed or the template cannot be migrated.
pub async fn database() -> TestDatabase {
    let template = template().await;
    let database = TestPostgres::shared().fresh_database(Some(&template)).await;
    set_isolation(&database).await;
    database
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
        let database = TestPostgres::shared().reused_database(&template).await;
        set_isolation(&database).await;
        database
    } else {
        database().await
    };
    let route = match &options.proxy {
        Some(proxy) => Route {
            url: database.url().replace(server_of(database.url()), proxy),
            pooler: options.pooler,
        },
        None if options.pooler == Pooler::None => route(database.url()),
        None => Route {
            url: database.url().to_owned(),
            pooler: options.pooler,
        },
    };
    let options = PostgresOptions {
        clock: options.store_clock(),
        notify: options.notify,
        pooler: route.pooler,
        max_connections: options.connections,
        connect_timeout: options.connect_timeout,
        ..PostgresOptions::new(route.url)
    };
    let store = PostgresStore::new(&options).unwrap();
    (Arc::new(store), Storage::Database(database))
}
