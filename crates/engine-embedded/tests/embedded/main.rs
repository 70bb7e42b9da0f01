//! Tests of the embedded engine on SQLite and PostgreSQL: the engine conformance suite, and the behaviour specific to this engine.
#![allow(clippy::unwrap_used)]

mod disk_full;
mod outage;
mod specific;

use leasehold_engine_conformance::EngineFixture;
use leasehold_engine_embedded::{EmbeddedEngine, EmbeddedOptions, NodeRunner, NodeRunnerOptions};
use leasehold_outbound::{Outbound, OutboundOptions};
use leasehold_runtime::{StoreSource, TimeoutSweeper, TimeoutSweeperOptions};
use leasehold_store::Store;
use leasehold_testbed::{BackendKind, BackendOptions, TestBackend};
use std::any::Any;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const IDENTITY: &str = "embedded";

/// Creates an engine on this store with node workers and a timeout sweeper, which live as long as the fixture.
fn on(store: Arc<dyn Store>, guard: impl Any + Send + Sync) -> EngineFixture {
    // Longer than the pauses of a busy machine: the cases count attempts.
    let options = NodeRunnerOptions {
        lease: Duration::from_secs(60),
        ..NodeRunnerOptions::default()
    };
    let runners = runners(&store, &options);
    let sweeper = TimeoutSweeper::new(store.clone(), IDENTITY, TimeoutSweeperOptions::default());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        leasehold_service::run(&sweeper, &CancellationToken::new(), || {}).await;
    });
    without_runner(store, (Mutex::new((runners, tasks)), guard))
}

/// Creates an engine on this store without workers for `http` and `delay` nodes.
fn without_runner(store: Arc<dyn Store>, guard: impl Any + Send + Sync) -> EngineFixture {
    let engine = EmbeddedEngine::new(store.clone(), EmbeddedOptions::new(IDENTITY));
    EngineFixture::new(Arc::new(engine), store).guarded(guard)
}

fn runners(store: &Arc<dyn Store>, options: &NodeRunnerOptions) -> NodeRunner {
    let loopback = OutboundOptions {
        allow: vec!["127.0.0.0/8".parse().unwrap()],
        ..OutboundOptions::default()
    };
    let outbound = Outbound::new(loopback).unwrap();
    let source = Arc::new(StoreSource::new(store.clone()));
    NodeRunner::start(source, outbound, options).unwrap()
}

async fn sqlite() -> EngineFixture {
    let backend = TestBackend::new(BackendKind::Sqlite).await;
    on(backend.store.clone(), backend)
}

async fn postgres() -> EngineFixture {
    let options = BackendOptions {
        connections: 10,
        ..BackendOptions::default()
    };
    let backend = TestBackend::with(BackendKind::Postgres, options).await;
    on(backend.store.clone(), backend)
}

mod on_sqlite {
    leasehold_engine_conformance::suite!(crate::sqlite);
}

mod on_postgres {
    leasehold_engine_conformance::suite!(crate::postgres);
}
