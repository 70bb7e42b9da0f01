//! A real Temporal, the server's API over a fresh store, and the worker between them, all in this process but Temporal. Knows no case.

use leasehold_client::Client;
use leasehold_core::key::KeyScope;
use leasehold_core::why::EngineFacts;
use leasehold_engine_conformance::Ground;
use leasehold_engine_temporal::worker::{GraphWorker, GraphWorkerOptions};
use leasehold_engine_temporal::{TemporalEngine, TemporalOptions};
use leasehold_outbound::{Outbound, OutboundOptions};
use leasehold_runtime::{Runtime, RuntimeOptions};
use leasehold_server::{EngineWatch, Parts, Server, ServerOptions, State};
use leasehold_store::{Store, fresh_id};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use leasehold_testkit::{TempDir, TestTemporal, temp_dir};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The queue of the tasks.
pub(crate) const QUEUE: &str = "conformance";

struct NoEngine;

impl EngineWatch for NoEngine {
    fn facts(&self) -> EngineFacts {
        EngineFacts::Missing
    }
}

/// What must live as long as a case: dropped, all of it stops.
struct Guard {
    _stop: DropGuard,
    _services: Runtime,
    _folder: TempDir,
}

/// A ground with a worker.
pub(crate) async fn ground() -> Ground {
    let folder = temp_dir();
    let file = folder.path().join("store.db");
    let store = SqliteStore::open(file, &SqliteOptions::default()).unwrap();
    store.schema_migrate().await.unwrap();
    let store: Arc<dyn Store> = Arc::new(store);
    let stop = CancellationToken::new();
    let url = serve(&store, &stop).await;
    let temporal = temporal_options();
    work(&temporal, client(&store, &url).await, &stop);
    // Jobs of dead workers come back by it.
    let services = Runtime::start(store.clone(), None, RuntimeOptions::new("test"));
    let engine = Arc::new(TemporalEngine::new(temporal).unwrap());
    let mut ground = Ground::new(engine, store).on_queue(QUEUE).guarded(Guard {
        _stop: stop.drop_guard(),
        _services: services,
        _folder: folder,
    });
    // Temporal answers a repeated start with the same request id as it did the first.
    ground.tells_repetitions = false;
    ground
}

/// The shared server, and a task queue that nobody else has.
fn temporal_options() -> TemporalOptions {
    let id: leasehold_core::RequestId = fresh_id();
    TemporalOptions {
        address: TestTemporal::shared().address().to_owned(),
        graph_task_queue: format!("graphs-{id}"),
        identity: "test".to_owned(),
        ..TemporalOptions::default()
    }
}

async fn serve(store: &Arc<dyn Store>, stop: &CancellationToken) -> String {
    let state = State::new(Parts {
        store: store.clone(),
        engine: None,
        watch: Arc::new(NoEngine),
        options: ServerOptions::default(),
        telemetry: Default::default(),
        stop: stop.clone(),
    });
    let server = Server::bind("127.0.0.1:0", None).await.unwrap();
    let url = format!("http://{}", server.address());
    tokio::spawn(server.serve(state));
    url
}

/// A client with a key for the queue of the tasks, and no other.
async fn client(store: &Arc<dyn Store>, url: &str) -> Client {
    let queues = vec![QUEUE.to_owned()];
    let key = leasehold_ops::key::create(&**store, "worker", KeyScope::Worker { queues }).await;
    Client::new(url, key.unwrap().1.reveal()).unwrap()
}

fn work(temporal: &TemporalOptions, client: Client, stop: &CancellationToken) {
    let allow = vec!["127.0.0.1".parse().unwrap()];
    let outbound = Outbound::new(OutboundOptions { allow }).unwrap();
    let options = GraphWorkerOptions {
        drain_timeout: Duration::ZERO,
        ..GraphWorkerOptions::default()
    };
    let worker = GraphWorker::new(temporal.clone(), options, client, outbound).unwrap();
    tokio::spawn(worker.run(stop.clone()));
}
