//! A server in the test's process, over a store of its own: its app, its state, an administrator's key and more keys.

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
use leasehold_server::{Parts, ServerOptions, State, app};
use leasehold_store::Store;
use leasehold_telemetry::{Telemetry, observe_store};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// What a server has for an engine.
#[derive(Clone, Default)]
pub enum ServerEngine {
    /// The [`TestEngine`], in good health.
    #[default]
    Test,
    /// None.
    Missing,
    /// This one, in good health.
    Given(Arc<dyn Engine>),
}

/// How a [`TestServer`] is set up.
#[derive(Clone, Default)]
pub struct ServerSetup {
    /// The server's limits.
    pub options: ServerOptions,
    /// The server's engine.
    pub engine: ServerEngine,
}

/// A server over a store of its own. Calls go to its app in process; `listen` and `serve` open a socket.
pub struct TestServer {
    /// The store as the server has it: observed, for its metrics.
    pub store: Arc<dyn Store>,
    /// The routes.
    pub app: Router,
    /// What the routes share.
    pub state: State,
    /// An administrator's key.
    pub admin: String,
    /// Stops the server.
    pub stop: CancellationToken,
    /// What the server believes of its engine; its engine too, unless the set-up says otherwise.
    pub engine: Arc<TestEngine>,
    /// The database behind the store.
    pub backend: TestBackend,
}

impl TestServer {
    /// Over a SQLite file, with the database's clock, ordinary limits and the test engine.
    pub async fn new() -> Self {
        Self::on(BackendKind::Sqlite).await
    }

    /// Over a store of this kind, else as [`new`](Self::new).
    pub async fn on(kind: BackendKind) -> Self {
        Self::over(TestBackend::new(kind).await, ServerSetup::default()).await
    }

    /// Over a SQLite file whose clock shows noon of 1 March 2026 until the test moves it.
    pub async fn with_manual_clock() -> Self {
        let start = "2026-03-01T12:00:00Z".parse().unwrap();
        let options = BackendOptions::default().clock_at(start);
        let backend = TestBackend::with(BackendKind::Sqlite, options).await;
        Self::over(backend, ServerSetup::default()).await
    }

    /// Over a SQLite file, with these limits.
    pub async fn with_options(options: ServerOptions) -> Self {
        Self::on_with_options(BackendKind::Sqlite, options).await
    }

    /// Over a store of this kind, with these limits.
    pub async fn on_with_options(kind: BackendKind, options: ServerOptions) -> Self {
        let setup = ServerSetup {
            options,
            ..ServerSetup::default()
        };
        Self::over(TestBackend::new(kind).await, setup).await
    }

    /// Over this backend.
    pub async fn over(backend: TestBackend, setup: ServerSetup) -> Self {
        let telemetry = Telemetry::default();
        let store: Arc<dyn Store> = Arc::new(observe_store(backend.store.clone(), &telemetry));
        let facts = match &setup.engine {
            ServerEngine::Test | ServerEngine::Given(_) => EngineFacts::Well,
            ServerEngine::Missing => EngineFacts::Missing,
        };
        let test_engine = Arc::new(TestEngine::new(facts));
        let engine: Option<Arc<dyn Engine>> = match setup.engine {
            ServerEngine::Test => Some(test_engine.clone()),
            ServerEngine::Missing => None,
            ServerEngine::Given(engine) => Some(engine),
        };
        let stop = CancellationToken::new();
        let state = State::new(Parts {
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

    /// Creates a key with this scope.
    pub async fn key(&self, scope: KeyScope) -> String {
        create_key(&*self.store, "test", scope).await
    }
}

async fn create_key(store: &dyn Store, name: &str, scope: KeyScope) -> String {
    let (_, secret) = ops::key::create(store, name, scope).await.unwrap();
    secret.reveal().to_owned()
}
