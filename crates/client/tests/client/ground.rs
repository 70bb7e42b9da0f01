//! What every scenario stands on: a server on a socket of its own with a fresh store, and a client with an administrator's key.

use crate::PATIENCE;
use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use leasehold_client::Client;
use leasehold_core::key::KeyScope;
use leasehold_core::why::EngineFacts;
use leasehold_server::{EngineWatch, Parts, ServerOptions, State, app};
use leasehold_store::Store;
use leasehold_store_postgres::{MIGRATIONS, PostgresOptions, PostgresStore};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use leasehold_testkit::{TempDir, TestDatabase, TestPostgres, eventually, temp_dir};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Which store a scenario runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    Postgres,
    Sqlite,
}

pub(crate) const QUEUE: &str = "emails";

pub(crate) struct Ground {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) state: State,
    pub(crate) client: Client,
    pub(crate) address: SocketAddr,
    pub(crate) admin: String,
    pub(crate) stop: CancellationToken,
    calls: Arc<Calls>,
    _database: Option<TestDatabase>,
    _folder: Option<TempDir>,
}

struct NoEngine;

impl EngineWatch for NoEngine {
    fn facts(&self) -> EngineFacts {
        EngineFacts::Missing
    }
}

impl Ground {
    pub(crate) async fn new(on: On) -> Self {
        let (store, database, folder) = store(on).await;
        let stop = CancellationToken::new();
        let state = State::new(Parts {
            store: store.clone(),
            engine: None,
            watch: Arc::new(NoEngine),
            options: ServerOptions::default(),
            telemetry: Default::default(),
            stop: stop.clone(),
        });
        let key = leasehold_ops::key::create(&*store, "admin", KeyScope::Admin).await;
        let admin = key.unwrap().1.reveal().to_owned();
        let calls = Arc::new(Calls::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let counted = counted(app(state.clone()), calls.clone());
        tokio::spawn(async move { axum::serve(listener, counted).await.unwrap() });
        Self {
            client: Client::new(&format!("http://{address}"), &admin).unwrap(),
            store,
            state,
            address,
            admin,
            stop,
            calls,
            _database: database,
            _folder: folder,
        }
    }

    /// A client with a key of this scope.
    pub(crate) async fn client_for(&self, scope: KeyScope) -> Client {
        let key = leasehold_ops::key::create(&*self.store, "test", scope).await;
        let key = key.unwrap().1;
        Client::new(&format!("http://{}", self.address), key.reveal()).unwrap()
    }

    /// A client with a key for workers of the queue.
    pub(crate) async fn worker_client(&self) -> Client {
        let queues = vec![QUEUE.to_owned()];
        self.client_for(KeyScope::Worker { queues }).await
    }

    /// How many calls the server has got so far.
    pub(crate) fn calls(&self) -> usize {
        self.calls.begun.load(Ordering::SeqCst)
    }

    /// How many calls are under way, those that wait among them.
    pub(crate) fn under_way(&self) -> usize {
        self.calls() - self.calls.ended.load(Ordering::SeqCst)
    }

    /// Waits until a claim waits at the server.
    pub(crate) async fn until_waiting(&self) {
        until("a claim waits", async || self.state.waiting_claims() > 0).await;
    }
}

/// The calls that a server got.
#[derive(Default)]
struct Calls {
    begun: AtomicUsize,
    ended: AtomicUsize,
}

/// One of them, until it is answered or its caller has gone.
struct Call(Arc<Calls>);

impl Drop for Call {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::SeqCst);
    }
}

fn counted(app: Router, calls: Arc<Calls>) -> Router {
    app.layer(from_fn(move |request: Request, next: Next| {
        calls.begun.fetch_add(1, Ordering::SeqCst);
        let call = Call(calls.clone());
        async move {
            let _until_answered = call;
            next.run(request).await
        }
    }))
}

/// Waits until it is so.
pub(crate) async fn until(what: &str, check: impl AsyncFn() -> bool) {
    let seen = eventually(PATIENCE, || check()).await;
    assert!(seen, "in vain waited until {what}");
}

/// A fresh store, and what it lives in.
async fn store(on: On) -> (Arc<dyn Store>, Option<TestDatabase>, Option<TempDir>) {
    match on {
        On::Postgres => {
            let database = database().await;
            let options = PostgresOptions {
                max_connections: 6,
                ..PostgresOptions::new(database.url())
            };
            let store = PostgresStore::new(&options).unwrap();
            (Arc::new(store), Some(database), None)
        }
        On::Sqlite => {
            let folder = temp_dir();
            let file = folder.path().join("leasehold.db");
            let store = SqliteStore::open(file, &SqliteOptions::default()).unwrap();
            store.schema_migrate().await.unwrap();
            (Arc::new(store), None, Some(folder))
        }
    }
}

/// A database made from the migrated template.
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
