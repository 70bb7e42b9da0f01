//! A Leasehold server in this process, on a free port, with a workspace key.

use anyhow::Result;
use leasehold_core::WorkspaceId;
use leasehold_core::key::KeyScope;
use leasehold_core::why::EngineFacts;
use leasehold_ops as ops;
use leasehold_server::{
    DrainReport, EngineWatch, Server, ServerOptions, State, StateParts, share_connections,
};
use leasehold_store::Store;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A running server.
pub(super) struct BenchServer {
    address: SocketAddr,
    key: String,
    stop: CancellationToken,
    serving: JoinHandle<DrainReport>,
}

struct NoEngine;

impl EngineWatch for NoEngine {
    fn facts(&self) -> EngineFacts {
        EngineFacts::Missing
    }
}

impl BenchServer {
    /// Starts a server with default limits, but without a rate limit.
    pub(super) async fn start(store: Arc<dyn Store>, workspace: WorkspaceId) -> Result<Self> {
        let scope = KeyScope::Workspace(workspace);
        let spec = ops::key::KeySpec::full("bench", scope);
        let (_, secret) = ops::key::create(&*store, &spec, &leasehold_store::Actor::Local).await?;
        let server = Server::bind("127.0.0.1:0", None).await?;
        let stop = CancellationToken::new();
        let state = State::new(StateParts {
            store: share_connections(store),
            engine: None,
            watch: Arc::new(NoEngine),
            options: ServerOptions {
                rate_per_second: 1_000_000,
                rate_burst: 1_000_000,
                ..ServerOptions::default()
            },
            telemetry: Default::default(),
            stop: stop.clone(),
        });
        Ok(Self {
            address: server.address(),
            key: secret.reveal().to_owned(),
            stop,
            serving: tokio::spawn(server.serve(state)),
        })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    pub(super) async fn stop(self) {
        self.stop.cancel();
        let _ = self.serving.await;
    }
}
