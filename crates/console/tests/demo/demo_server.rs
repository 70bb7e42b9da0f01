//! The server under the demo: a fresh SQLite file and the embedded engine on a socket.

use leasehold_client::api::overview::Overview;
use leasehold_client::api::workspace::WorkspaceState;
use leasehold_console::demo::{Demo, DemoOptions};
use leasehold_console::{Output, OutputFlags, Session};
use leasehold_engine::Engine;
use leasehold_engine_embedded::{EmbeddedEngine, EmbeddedOptions, NodeRunner, NodeRunnerOptions};
use leasehold_outbound::{Outbound, OutboundOptions};
use leasehold_runtime::{Runtime, RuntimeOptions, StoreSource, TimeoutSweeperOptions};
use leasehold_server::DrainReport;
use leasehold_testbed::{BackendKind, ServerEngine, ServerSetup, TestBackend, TestServer};
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const OWNER: &str = "test";

/// A server with its services, and an administrator session.
pub(crate) struct DemoServer {
    pub(crate) session: Session,
    runtime: Runtime,
    runners: NodeRunner,
    serving: JoinHandle<DrainReport>,
    server: TestServer,
}

impl DemoServer {
    pub(crate) async fn new() -> Self {
        let backend = TestBackend::new(BackendKind::Sqlite).await;
        let store = backend.store.clone();
        let outbound = Outbound::new(OutboundOptions::default()).unwrap();
        let options = NodeRunnerOptions::default();
        let source = Arc::new(StoreSource::new(store.clone()));
        let runners = NodeRunner::start(source, outbound, &options).unwrap();
        let engine = EmbeddedEngine::new(store.clone(), EmbeddedOptions::new(OWNER));
        let engine: Arc<dyn Engine> = Arc::new(engine);
        let options = RuntimeOptions {
            timeout_sweeper: Some(TimeoutSweeperOptions::default()),
            ..RuntimeOptions::new(OWNER)
        };
        let runtime = Runtime::start(store, Some(engine.clone()), options);
        let setup = ServerSetup {
            engine: ServerEngine::Given(engine),
            ..ServerSetup::default()
        };
        let server = TestServer::over(backend, setup).await;
        let (address, serving) = server.serve(None).await;
        let out = Output::new(&OutputFlags::default());
        let client = server.admin_client(address);
        Self {
            session: Session::with(client, format!("http://{address}"), out),
            runtime,
            runners,
            serving,
            server,
        }
    }

    /// Sets up and starts the demo.
    pub(crate) async fn start_demo(&self, options: DemoOptions) -> RunningDemo {
        let demo = Demo::prepare(&self.session, options).await.unwrap();
        let stop = CancellationToken::new();
        RunningDemo {
            task: tokio::spawn(demo.run(stop.clone())),
            stop,
        }
    }

    pub(crate) async fn overview(&self) -> Overview {
        self.session.client.overview().await.unwrap()
    }

    pub(crate) async fn stop(self) {
        self.server.stop.cancel();
        self.runners.stop().await;
        self.runtime.stop().await;
        self.serving.await.unwrap();
    }
}

/// A running demo.
pub(crate) struct RunningDemo {
    task: JoinHandle<Result<(), leasehold_console::Failure>>,
    stop: CancellationToken,
}

impl RunningDemo {
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
    }
}

/// Finds a workspace in an overview.
pub(crate) fn workspace<'a>(overview: &'a Overview, name: &str) -> &'a WorkspaceState {
    let mut states = overview.busiest.iter();
    let found = states.find(|state| state.workspace.name == name);
    found.unwrap_or_else(|| panic!("workspace `{name}` not found"))
}
