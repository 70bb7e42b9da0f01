//! The listener: accepts connections up to a limit and drains them when the server stops. Knows no route.

use crate::app::app;
use crate::connection::Protocol;
use crate::connection_pool::{ConnectionPermit, ConnectionPool};
use crate::state::State;
use crate::tls::Tls;
use leasehold_api::{Code, Problem};
use leasehold_core::limits::LOCAL_CONNECTIONS_MAX;
use leasehold_service::FailureStreak;
use leasehold_telemetry::FloatGauge;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Rejected connections that get a 503 response at once; further ones are closed without a response.
const REJECTIONS_MAX: usize = 64;
/// Time limit for sending the 503 response.
const REJECTION_TIMEOUT: Duration = Duration::from_secs(1);
/// `Retry-After` in seconds of that response.
const REJECTION_RETRY_AFTER: u64 = 1;
/// Pause after a failed accept, for example when the process is out of file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Time limit at shutdown for returning claimed jobs to their queues.
const RETURN_JOBS_TIMEOUT: Duration = Duration::from_secs(5);
/// Time without a failure after which accepting counts as recovered: with few file descriptors left, failures and successes alternate.
const RECOVERED_AFTER: Duration = Duration::from_secs(30);

/// Why the server cannot listen.
#[derive(Debug, Error)]
pub enum ListenError {
    /// The address is in use.
    #[error(
        "cannot listen on {0} (server.listen): the address is in use by another program; stop it, or choose another port with --listen"
    )]
    AddressInUse(String),
    /// The system refused the address.
    #[error("cannot listen on {address} (server.listen): {source}")]
    Bind {
        /// The address.
        address: String,
        /// The system's error.
        source: io::Error,
    },
}

/// The result of draining connections at shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainReport {
    /// Connections closed because their calls did not end in time.
    pub cut: usize,
}

/// A server bound to an address.
pub struct Server {
    listener: TcpListener,
    /// For commands on this machine; without TLS, because only users with access to the socket's directory can connect.
    local: Option<UnixListener>,
    address: SocketAddr,
    tls: Option<Tls>,
}

/// An accepted connection.
enum Accepted {
    Tcp(TcpStream, SocketAddr),
    Local(UnixStream),
}

/// Counts an open connection until it is dropped.
#[expect(dead_code, reason = "permits are held for their drop")]
enum Permit {
    Tcp(ConnectionPermit),
    Local(OwnedSemaphorePermit),
}

impl Server {
    /// Listens on `host:port`; port 0 selects a free port.
    pub async fn bind(address: &str, tls: Option<Tls>) -> Result<Self, ListenError> {
        let bind_error = |source: io::Error| match source.kind() {
            ErrorKind::AddrInUse => ListenError::AddressInUse(address.to_owned()),
            _ => ListenError::Bind {
                address: address.to_owned(),
                source,
            },
        };
        let listener = TcpListener::bind(address).await.map_err(bind_error)?;
        Ok(Self {
            address: listener.local_addr().map_err(bind_error)?,
            listener,
            local: None,
            tls,
        })
    }

    /// Also serves the connections of this Unix socket.
    #[must_use]
    pub fn with_local_socket(mut self, local: UnixListener) -> Self {
        self.local = Some(local);
        self
    }

    /// Returns the address the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves the API until the state's stop token is cancelled, then drains: until all calls have ended or the drain timeout has passed.
    pub async fn serve(self, state: State) -> DrainReport {
        let limiter = Arc::new(ConnectionLimiter::new(&state, self.tls));
        let mut connections = JoinSet::new();
        let mut failures = FailureStreak::of("listener")
            .action("accept connections")
            .with_quiet_period(RECOVERED_AFTER);
        loop {
            let accepted = tokio::select! {
                biased;
                () = state.stop.cancelled() => break,
                Some(_) = connections.join_next() => continue,
                // First: a flood over the network must not keep an operator out.
                accepted = accept_local(self.local.as_ref()) => accepted,
                accepted = self.listener.accept() => accepted.map(|(stream, peer)| Accepted::Tcp(stream, peer)),
            };
            match accepted {
                Ok(stream) => {
                    failures.succeeded();
                    if let Some(served) = limiter.handle(stream) {
                        connections.spawn(served);
                    }
                }
                Err(error) if is_peer_error(&error) => {}
                Err(error) => {
                    failures.failed(&AcceptError(error));
                    sleep(ACCEPT_RETRY_DELAY).await;
                }
            }
        }
        // From here on the system refuses new connections.
        drop((self.listener, self.local));
        let drained = timeout(state.options.drain_timeout, async {
            while connections.join_next().await.is_some() {}
        });
        let _ = drained.await;
        // Jobs claimed for disconnected callers are returned before the process ends.
        let _ = timeout(RETURN_JOBS_TIMEOUT, state.claim_waiters.drained()).await;
        DrainReport {
            cut: connections.len(),
        }
    }
}

/// Accepts a connection of the Unix socket; never returns without one.
async fn accept_local(local: Option<&UnixListener>) -> io::Result<Accepted> {
    match local {
        Some(local) => {
            let (stream, _) = local.accept().await?;
            Ok(Accepted::Local(stream))
        }
        None => std::future::pending().await,
    }
}

/// Serves connections up to `server.max_connections`, shared fairly by the networks of the peers, and those of the Unix socket up to a limit of their own;
/// rejects the rest.
///
/// Rejected connections get 503 with `Retry-After` instead of waiting in the accept queue: a waiting peer cannot tell a full server from a dead one.
struct ConnectionLimiter {
    state: State,
    protocol: Protocol,
    tls: Option<Tls>,
    connections: Arc<ConnectionPool>,
    /// The connections of the Unix socket, which peers on the network cannot use up.
    local_connections: Arc<Semaphore>,
    rejections: Arc<Semaphore>,
}

impl ConnectionLimiter {
    fn new(state: &State, tls: Option<Tls>) -> Self {
        Self {
            protocol: Protocol::new(app(state.clone()), &state.options),
            connections: ConnectionPool::new(state.options.max_connections),
            local_connections: Arc::new(Semaphore::new(LOCAL_CONNECTIONS_MAX)),
            rejections: Arc::new(Semaphore::new(REJECTIONS_MAX)),
            state: state.clone(),
            tls,
        }
    }

    /// Returns the task that serves or rejects a connection; `None` closes it at once.
    fn handle(self: &Arc<Self>, stream: Accepted) -> Option<impl Future<Output = ()> + use<>> {
        let (permit, is_plain) = match &stream {
            Accepted::Tcp(_, peer) => {
                let permit = self.connections.try_acquire(peer.ip().into());
                (permit.map(Permit::Tcp), self.tls.is_none())
            }
            Accepted::Local(_) => {
                let permit = Arc::clone(&self.local_connections).try_acquire_owned();
                (permit.ok().map(Permit::Local), true)
            }
        };
        let rejection = if permit.is_none() {
            self.state.telemetry.metrics.refused_connections.inc();
            // Over TLS a response would need a handshake, which costs more than serving the call.
            let rejection = Arc::clone(&self.rejections).try_acquire_owned().ok();
            Some(rejection.filter(|_| is_plain)?)
        } else {
            None
        };
        let limiter = Arc::clone(self);
        Some(async move {
            match (permit, rejection) {
                (Some(permit), _) => limiter.serve(stream, permit).await,
                (None, Some(rejection)) => match stream {
                    Accepted::Tcp(stream, _) => reject(stream, rejection).await,
                    Accepted::Local(stream) => reject(stream, rejection).await,
                },
                (None, None) => {}
            }
        })
    }

    async fn serve(&self, stream: Accepted, _permit: Permit) {
        let _open = OpenConnection::count(&self.state.telemetry.metrics.open_connections);
        let stop: &CancellationToken = &self.state.stop;
        let stream = match stream {
            Accepted::Tcp(stream, _) => stream,
            Accepted::Local(stream) => return self.protocol.serve(stream, stop).await,
        };
        // Without TCP_NODELAY responses are only slower.
        let _ = stream.set_nodelay(true);
        match &self.tls {
            None => self.protocol.serve(stream, stop).await,
            Some(tls) => {
                let limit = self.state.options.header_timeout;
                let handshake = tokio::select! {
                    handshake = timeout(limit, tls.acceptor().accept(stream)) => handshake,
                    () = stop.cancelled() => return,
                };
                match handshake {
                    Ok(Ok(stream)) => self.protocol.serve(stream, stop).await,
                    Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
                    Err(_) => tracing::debug!("TLS handshake timed out"),
                }
            }
        }
    }
}

/// Counts a connection in the gauge until dropped.
struct OpenConnection(FloatGauge);

impl OpenConnection {
    fn count(gauge: &FloatGauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// The response to a connection over the limit.
static TOO_MANY_CONNECTIONS: LazyLock<String> = LazyLock::new(|| {
    let problem = Problem::new(Code::Overloaded, "too many open connections");
    let problem = problem.retry_after(REJECTION_RETRY_AFTER);
    let body = serde_json::to_string(&problem).unwrap_or_default();
    let length = body.len();
    format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n\
         retry-after: {REJECTION_RETRY_AFTER}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
});

/// Sends the 503 response and waits until the peer closes: closing first could discard the response.
async fn reject(mut stream: impl AsyncRead + AsyncWrite + Unpin, _rejection: OwnedSemaphorePermit) {
    let sent = async {
        stream.write_all(TOO_MANY_CONNECTIONS.as_bytes()).await?;
        stream.shutdown().await?;
        let mut unread = [0; 1024];
        while stream.read(&mut unread).await? > 0 {}
        io::Result::Ok(())
    };
    // A peer that does not read is not waited for.
    let _ = timeout(REJECTION_TIMEOUT, sent).await;
}

/// A failed accept, and what to do about it.
#[derive(Debug, Error)]
#[error(
    "{0}; if the process is out of file descriptors, raise the limit (ulimit -n) or lower server.max_connections"
)]
struct AcceptError(io::Error);

/// Whether the peer closed its connection before it was accepted.
fn is_peer_error(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::ConnectionRefused
    )
}
