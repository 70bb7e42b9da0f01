//! The embedded engine over a SQLite file and over PostgreSQL: the suite that says what an engine is, and what is this engine's own.
#![allow(clippy::unwrap_used)]

mod outage;
mod own;

use leasehold_engine_conformance::Ground;
use leasehold_engine_embedded::{EmbeddedEngine, EmbeddedOptions, NodeRunners, RunnerOptions};
use leasehold_outbound::{Outbound, OutboundOptions};
use leasehold_store::Store;
use leasehold_store_postgres::{MIGRATIONS, PostgresOptions, PostgresStore};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use leasehold_testkit::{TempDir, TestDatabase, TestPostgres};
use std::any::Any;
use std::sync::{Arc, Mutex};

const IDENTITY: &str = "embedded";

/// An engine on this store, and what works on its nodes; both live as long as the ground.
fn on(store: Arc<dyn Store>, guard: impl Any + Send + Sync) -> Ground {
    let runners = runners(&store, &RunnerOptions::default());
    idle(store, (Mutex::new(runners), guard))
}

/// An engine on this store whose calls and pauses nobody works on.
fn idle(store: Arc<dyn Store>, guard: impl Any + Send + Sync) -> Ground {
    let engine = EmbeddedEngine::new(store.clone(), EmbeddedOptions::new(IDENTITY));
    Ground::new(Arc::new(engine), store).guarded(guard)
}

fn runners(store: &Arc<dyn Store>, options: &RunnerOptions) -> NodeRunners {
    let loopback = OutboundOptions {
        allow: vec!["127.0.0.0/8".parse().unwrap()],
    };
    let outbound = Outbound::new(loopback).unwrap();
    NodeRunners::start(store.clone(), outbound, IDENTITY, options).unwrap()
}

async fn file() -> (Arc<dyn Store>, TempDir) {
    let folder = leasehold_testkit::temp_dir();
    let path = folder.path().join("leasehold.db");
    let store = SqliteStore::open(path, &SqliteOptions::default()).unwrap();
    store.schema_migrate().await.unwrap();
    (Arc::new(store), folder)
}

async fn sqlite() -> Ground {
    let (store, folder) = file().await;
    on(store, folder)
}

async fn database() -> TestDatabase {
    let server = TestPostgres::shared();
    let hash = MIGRATIONS
        .iter()
        .fold(0i64, |hash, m| hash.rotate_left(7) ^ m.checksum());
    let name = format!("leasehold_{:016x}", hash.cast_unsigned());
    let template = server.template_database(&name, |url| async move {
        let store = PostgresStore::new(&PostgresOptions::new(url)).unwrap();
        store.schema_migrate().await.unwrap();
    });
    server.fresh_database(Some(&template.await)).await
}

async fn postgres() -> Ground {
    let database = database().await;
    let store = PostgresStore::new(&PostgresOptions::new(database.url())).unwrap();
    on(Arc::new(store), database)
}

mod on_sqlite {
    leasehold_engine_conformance::suite!(crate::sqlite);
}

mod on_postgres {
    leasehold_engine_conformance::suite!(crate::postgres);
}
