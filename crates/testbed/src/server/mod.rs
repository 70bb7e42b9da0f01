//! A server in the test process on its own store: its app, its state and its keys.

mod calls;
mod listen;
mod requests;
mod response;

pub use requests::KeyedWorkspace;
pub use response::TestResponse;

use crate::backend::{BackendKind, BackendOptions, TestBackend};
use crate::engine::TestEngine;
use axum::Router;
use leasehold_core::key::KeyScope;
use leasehold_core::why::EngineFacts;
use leasehold_engine::Engine;
use leasehold_ops as ops;
use leasehold_ops::key::KeySpec;
use leasehold_server::{ServerOptions, State, StateParts, app, share_connections};
use leasehold_store::{Actor, Store};
use leasehold_telemetry::{Telemetry, observe_store};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The engine of a [`TestServer`].
#[derive(Clone, Default)]
pub enum ServerEngine {
    /// A healthy [`TestEngine`].
    #[default]
    Test,
    /// No engine.
    Missing,
    /// This engine, reported as healthy.
    Given(Arc<dyn Engine>),
}

/// Options of a [`TestServer`].
#[derive(Clone, Default)]
pub struct ServerSetup {
    /// The server's limits.
    pub options: ServerOptions,
    /// The server's engine.
    pub engine: ServerEngine,
}

/// A server on its own store. Calls go to its app in process; `listen` and `serve` open a socket.
pub struct TestServer {
    /// The server's store, with metrics.
    pub store: Arc<dyn Store>,
    /// The routes.
    pub app: Router,
    /// The state that the routes share.
    pub state: State,
    /// An administrator key.
    pub admin: String,
    /// Stops the server.
    pub stop: CancellationToken,
    /// The engine's health as the server sees it; also its engine, unless the set-up has another.
    pub engine: Arc<TestEngine>,
    /// The database behind the store.
    pub backend: TestBackend,
}

impl TestServer {
    /// Starts a server on a SQLite file, with the database's clock, default limits and the test engine.
    pub async fn new() -> Self {
        Self::on(BackendKind::Sqlite).await
    }

    /// Starts a server on a store of this kind, otherwise like [`new`](Self::new).
    pub async fn on(kind: BackendKind) -> Self {
        Self::over(TestBackend::new(kind).await, ServerSetup::default()).await
    }

    /// Starts a server on a SQLite file with a manual clock at noon of 1 March 2026.
    pub async fn with_manual_clock() -> Self {
        let start = "2026-03-01T12:00:00Z".parse().unwrap();
        let options = BackendOptions::default().clock_at(start);
        let backend = TestBackend::with(BackendKind::Sqlite, options).await;
        Self::over(backend, ServerSetup::default()).await
    }

    /// Starts a server on a SQLite file with these limits.
    pub async fn with_options(options: ServerOptions) -> Self {
        Self::on_with_options(BackendKind::Sqlite, options).await
    }

    /// Starts a server on a store of this kind with these limits.
    pub async fn on_with_options(kind: BackendKind, options: ServerOptions) -> Self {
        let setup = ServerSetup {
            options,
            ..ServerSetup::default()
        };
        Self::over(TestBackend::new(kind).await, setup).await
    }

    /// Starts a server on this backend.
    pub async fn over(backend: TestBackend, setup: ServerSetup) -> Self {
        let telemetry = Telemetry::default();
        let store: Arc<dyn Store> = Arc::new(observe_store(backend.store.clone(), &telemetry));
        let store = share_connections(store);
        let facts = match &setup.engine {
            ServerEngine::Test | ServerEngine::Given(_) => EngineFacts::Healthy,
            ServerEngine::Missing => EngineFacts::Missing,
        };
        let test_engine = Arc::new(TestEngine::new(facts));
        let engine: Option<Arc<dyn Engine>> = match setup.engine {
            ServerEngine::Test => Some(test_engine.clone()),
            ServerEngine::Missing => None,
            ServerEngine::Given(engine) => Some(engine),
        };
        let stop = CancellationToken::new();
        let state = State::new(StateParts {
            store: store.clone(),
            engine,
            watch: test_engine.clone(),
            options: setup.options,
            telemetry,
            stop: stop.clone(),
        });
        Self {
            admin: create_key(&*store, "admin", KeyScope::Admin).await,
            store,
            app: app(state.clone()),
            state,
            stop,
            engine: test_engine,
            backend,
        }
    }

    /// Creates a key with all rights of this scope.
    pub async fn key(&self, scope: KeyScope) -> String {
        create_key(&*self.store, "test", scope).await
    }

    /// Creates a key.
    pub async fn key_with(&self, spec: &KeySpec) -> String {
        let created = ops::key::create(&*self.store, spec, &Actor::Local).await;
        created.unwrap().1.reveal().to_owned()
    }
}

async fn create_key(store: &dyn Store, name: &str, scope: KeyScope) -> String {
    let spec = KeySpec::full(name, scope);
    let created = ops::key::create(store, &spec, &Actor::Local).await;
    let (_, secret) = created.unwrap();
    secret.reveal().to_owned()
}
