//! The fixture: a real Temporal, and in this process the API server on a fresh store and the graph worker.

use leasehold_client::Client;
use leasehold_core::key::KeyScope;
use leasehold_engine_conformance::EngineFixture;
use leasehold_engine_temporal::{GraphWorkerOptions, TemporalEngine, TemporalOptions};
use leasehold_outbound::{Outbound, OutboundOptions};
use leasehold_runtime::{Runtime, RuntimeOptions};
use leasehold_store::fresh_id;
use leasehold_temporal_worker::GraphWorker;
use leasehold_testbed::{BackendKind, ServerEngine, ServerSetup, TestBackend, TestServer};
use leasehold_testkit::TestTemporal;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The queue of task nodes.
pub(crate) const QUEUE: &str = "conformance";

/// Stops everything when it is dropped.
struct Guard {
    _stop: DropGuard,
    _services: Runtime,
    _server: TestServer,
}

/// Creates an engine with a graph worker.
pub(crate) async fn fixture() -> EngineFixture {
    let setup = ServerSetup {
        engine: ServerEngine::Missing,
        ..ServerSetup::default()
    };
    let server = TestServer::over(TestBackend::new(BackendKind::Sqlite).await, setup).await;
    let (address, _) = server.serve(None).await;
    let temporal = temporal_options();
    let queues = vec![QUEUE.to_owned()];
    // A key for the task queue only.
    let client = server.client(address, KeyScope::Worker { queues }).await;
    start_worker(&temporal, client, &server.stop);
    let store = server.store.clone();
    // Requeues the jobs of dead workers.
    let services = Runtime::start(store.clone(), None, RuntimeOptions::new("test"));
    let engine = Arc::new(TemporalEngine::new(temporal).unwrap());
    let guard = Guard {
        _stop: server.stop.clone().drop_guard(),
        _services: services,
        _server: server,
    };
    let fixture = EngineFixture::new(engine, store);
    EngineFixture {
        // Temporal answers a repeated start with the same request id like the first one.
        reports_repeated_starts: false,
        ..fixture.on_queue(QUEUE).guarded(guard)
    }
}

/// Options for the shared server with the test's own task queue.
fn temporal_options() -> TemporalOptions {
    let id: leasehold_core::RequestId = fresh_id();
    TemporalOptions {
        address: TestTemporal::shared().address().to_owned(),
        graph_task_queue: format!("graphs-{id}"),
        identity: "test".to_owned(),
        ..TemporalOptions::default()
    }
}

fn start_worker(temporal: &TemporalOptions, client: Client, stop: &CancellationToken) {
    let outbound = Outbound::new(OutboundOptions {
        allow: vec!["127.0.0.1".parse().unwrap()],
        ..OutboundOptions::default()
    });
    let outbound = outbound.unwrap();
    let options = GraphWorkerOptions {
        drain_timeout: Duration::ZERO,
        ..GraphWorkerOptions::default()
    };
    let worker = GraphWorker::new(temporal.clone(), options, client, outbound).unwrap();
    tokio::spawn(worker.run(stop.clone()));
}
