//! A server on its own socket that counts calls, and a client with an administrator key.

use crate::WAIT_TIMEOUT;
use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use leasehold_client::Client;
use leasehold_core::key::KeyScope;
use leasehold_testbed::{BackendKind, ServerEngine, ServerSetup, TestBackend, TestServer};
use leasehold_testkit::eventually;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) const QUEUE: &str = "emails";

/// A [`TestServer`] without an engine, on a socket, that counts calls.
pub(crate) struct CountingServer {
    pub(crate) client: Client,
    pub(crate) address: SocketAddr,
    server: TestServer,
    calls: Arc<Calls>,
}

impl Deref for CountingServer {
    type Target = TestServer;

    fn deref(&self) -> &TestServer {
        &self.server
    }
}

impl CountingServer {
    pub(crate) async fn new(on: BackendKind) -> Self {
        let setup = ServerSetup {
            engine: ServerEngine::Missing,
            ..ServerSetup::default()
        };
        let server = TestServer::over(TestBackend::new(on).await, setup).await;
        let calls = Arc::new(Calls::default());
        let address = TestServer::listen(counted(server.app.clone(), calls.clone())).await;
        Self {
            client: server.admin_client(address),
            address,
            server,
            calls,
        }
    }

    /// Creates a client with a key of this scope.
    pub(crate) async fn client_for(&self, scope: KeyScope) -> Client {
        self.server.client(self.address, scope).await
    }

    /// Creates a client with a worker key for [`QUEUE`].
    pub(crate) async fn worker_client(&self) -> Client {
        let queues = vec![QUEUE.to_owned()];
        self.client_for(KeyScope::Worker { queues }).await
    }

    /// Returns the number of calls so far.
    pub(crate) fn calls(&self) -> usize {
        self.calls.begun.load(Ordering::SeqCst)
    }

    /// Returns the number of unanswered calls, waiting claims included.
    pub(crate) fn under_way(&self) -> usize {
        self.calls() - self.calls.ended.load(Ordering::SeqCst)
    }

    /// Waits until a claim waits at the server.
    pub(crate) async fn until_waiting(&self) {
        until("a claim waits", async || self.state.waiting_claims() > 0).await;
    }
}

/// The counters of a server's calls.
#[derive(Default)]
struct Calls {
    begun: AtomicUsize,
    ended: AtomicUsize,
}

/// One call, until it is answered or the caller disconnects.
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
            let _call = call;
            next.run(request).await
        }
    }))
}

/// Waits until `check` returns true.
pub(crate) async fn until(what: &str, check: impl AsyncFn() -> bool) {
    let seen = eventually(WAIT_TIMEOUT, || check()).await;
    assert!(seen, "timed out waiting until {what}");
}
