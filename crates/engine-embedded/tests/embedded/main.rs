//! The embedded engine over a SQLite file and over PostgreSQL: the suite that says what an engine is, and what is this engine's own.
#![allow(clippy::unwrap_used)]

mod outage;
mod own;

use leasehold_engine_conformance::EngineFixture;
use leasehold_engine_embedded::{EmbeddedEngine, EmbeddedOptions, NodeRunners, RunnerOptions};
use leasehold_outbound::{Outbound, OutboundOptions};
use leasehold_runtime::{Settler, SettlerOptions, StoreSource};
use leasehold_store::Store;
use leasehold_testbed::{BackendKind, BackendOptions, TestBackend};
use std::any::Any;
use std::sync::{Arc, Mutex};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const IDENTITY: &str = "embedded";

/// An engine on this store, workers for its nodes, and a settler; all live as long as the fixture.
fn on(store: Arc<dyn Store>, guard: impl Any + Send + Sync) -> EngineFixture {
    let runners = runners(&store, &RunnerOptions::default());
    let settler = Settler::new(store.clone(), IDENTITY, SettlerOptions::default());
    let mut settling = JoinSet::new();
    settling
        .spawn(async move { leasehold_service::run(&settler, &CancellationToken::new()).await });
    idle(store, (Mutex::new((runners, settling)), guard))
}

/// An engine on this store whose calls and pauses nobody works on.
fn idle(store: Arc<dyn Store>, guard: impl Any + Send + Sync) -> EngineFixture {
    let engine = EmbeddedEngine::new(store.clone(), EmbeddedOptions::new(IDENTITY));
    EngineFixture::new(Arc::new(engine), store).guarded(guard)
}

fn runners(store: &Arc<dyn Store>, options: &RunnerOptions) -> NodeRunners {
    let loopback = OutboundOptions {
        allow: vec!["127.0.0.0/8".parse().unwrap()],
    };
    let outbound = Outbound::new(loopback).unwrap();
    let source = Arc::new(StoreSource::new(store.clone()));
    NodeRunners::start(source, outbound, options).unwrap()
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
