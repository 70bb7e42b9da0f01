//! What the demo is played on: a server with a fresh SQLite file and the embedded engine, on a socket of its own.

use leasehold_client::Client;
use leasehold_client::api::overview::Overview;
use leasehold_client::api::workspace::WorkspaceState;
use leasehold_console::demo::{Demo, DemoOptions};
use leasehold_console::{Output, OutputFlags, Session};
use leasehold_core::key::KeyScope;
use leasehold_core::why::EngineFacts;
use leasehold_engine_embedded::{EmbeddedEngine, EmbeddedOptions, NodeRunners, RunnerOptions};
use leasehold_outbound::{Outbound, OutboundOptions};
use leasehold_runtime::{Runtime, RuntimeOptions};
use leasehold_server::{Drained, EngineWatch, Parts, Server, ServerOptions, State};
use leasehold_store::Store;
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use leasehold_testkit::{TempDir, temp_dir};
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const OWNER: &str = "test";

pub(crate) struct Ground {
    pub(crate) session: Session,
    runtime: Runtime,
    runners: NodeRunners,
    serving: JoinHandle<Drained>,
    stop: CancellationToken,
    _folder: TempDir,
}

struct Well;

impl EngineWatch for Well {
    fn facts(&self) -> EngineFacts {
        EngineFacts::Well
    }
}

impl Ground {
    pub(crate) async fn new() -> Self {
        let folder = temp_dir();
        let file = folder.path().join("leasehold.db");
        let store = SqliteStore::open(file, &SqliteOptions::default()).unwrap();
        store.schema_migrate().await.unwrap();
        let store: Arc<dyn Store> = Arc::new(store);
        let outbound = Outbound::new(OutboundOptions::default()).unwrap();
        let options = RunnerOptions::default();
        let runners = NodeRunners::start(store.clone(), outbound, OWNER, &options).unwrap();
        let engine = EmbeddedEngine::new(store.clone(), EmbeddedOptions::new(OWNER));
        let engine = Arc::new(engine);
        let runtime = Runtime::start(
            store.clone(),
            Some(engine.clone()),
            RuntimeOptions::new(OWNER),
        );
        let server = Server::bind("127.0.0.1:0", None).await.unwrap();
        let address = format!("http://{}", server.address());
        let stop = CancellationToken::new();
        let key = leasehold_ops::key::create(&*store, "admin", KeyScope::Admin).await;
        let state = State::new(Parts {
            store,
            engine: Some(engine),
            watch: Arc::new(Well),
            options: ServerOptions::default(),
            telemetry: Default::default(),
            stop: stop.clone(),
        });
        let client = Client::new(&address, key.unwrap().1.reveal()).unwrap();
        let out = Output::new(&OutputFlags::default());
        Self {
            session: Session::with(client, address, out),
            runtime,
            runners,
            serving: tokio::spawn(server.serve(state)),
            stop,
            _folder: folder,
        }
    }

    /// The demo, begun.
    pub(crate) async fn play(&self, options: DemoOptions) -> Play {
        let demo = Demo::prepare(&self.session, options).await.unwrap();
        let stop = CancellationToken::new();
        Play {
            task: tokio::spawn(demo.play(stop.clone())),
            stop,
        }
    }

    pub(crate) async fn overview(&self) -> Overview {
        self.session.client.overview().await.unwrap()
    }

    pub(crate) async fn end(self) {
        self.stop.cancel();
        self.runners.stop().await;
        self.runtime.stop().await;
        self.serving.await.unwrap();
    }
}

/// A demo that is being played.
pub(crate) struct Play {
    task: JoinHandle<Result<(), leasehold_console::Failure>>,
    stop: CancellationToken,
}

impl Play {
    pub(crate) async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
    }
}

/// A workspace of an overview.
pub(crate) fn of<'a>(overview: &'a Overview, name: &str) -> &'a WorkspaceState {
    let mut states = overview.busiest.iter();
    let found = states.find(|state| state.workspace.name == name);
    found.unwrap_or_else(|| panic!("there is no workspace `{name}`"))
}
