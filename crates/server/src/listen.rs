//! The listener: takes connections, as many as there may be, and lets them end in order when the server stops. Knows no route.

use crate::app::app;
use crate::connection::Protocol;
use crate::state::State;
use crate::tls::Tls;
use leasehold_api::{Code, Problem};
use leasehold_service::FailureStreak;
use leasehold_telemetry::Level;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Connections that are being told that there are too many; the rest is closed without a word.
const REFUSED_AT_ONCE: usize = 64;
/// How long one of them may take to hear it.
const REFUSED_WITHIN: Duration = Duration::from_secs(1);
/// Seconds after which there may be a place again.
const REFUSED_FOR: u64 = 1;
/// The system has no more files or memory for connections: it gets some time to find some.
const BREATH: Duration = Duration::from_millis(100);
/// How long jobs may take to be given back at the end.
const GIVE_BACK_WITHIN: Duration = Duration::from_secs(5);
/// How long after the last failure accepting counts as working: while files run short, failures and successes alternate.
const QUIET_FOR: Duration = Duration::from_secs(30);

/// Why it cannot listen.
#[derive(Debug, Error)]
pub enum ListenError {
    /// Somebody else does.
    #[error(
        "server.listen: {0} is taken by another program; end that one, or name another port with --listen"
    )]
    Taken(String),
    /// The system does not let us.
    #[error("server.listen: cannot listen on {address}: {source}")]
    Refused {
        /// Where.
        address: String,
        /// What the system says.
        source: io::Error,
    },
}

/// How serving ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Connections whose calls did not end in time.
    pub cut: usize,
}

/// A server that listens, and serves when told to.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Tls>,
}

impl Server {
    /// Listens on `host:port`; port 0 is one that is free.
    pub async fn bind(address: &str, tls: Option<Tls>) -> Result<Self, ListenError> {
        let refused = |source: io::Error| match source.kind() {
            ErrorKind::AddrInUse => ListenError::Taken(address.to_owned()),
            _ => ListenError::Refused {
                address: address.to_owned(),
                source,
            },
        };
        let listener = TcpListener::bind(address).await.map_err(refused)?;
        Ok(Self {
            address: listener.local_addr().map_err(refused)?,
            listener,
            tls,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves the API until it is told to stop by its state's token, and then until everything under way has ended or the time to drain is up.
    pub async fn serve(self, state: State) -> Drained {
        let doorman = Arc::new(Doorman::new(&state, self.tls));
        let mut connections = JoinSet::new();
        let mut failures = FailureStreak::of("listener")
            .action("accept connections")
            .over_after(QUIET_FOR);
        loop {
            let accepted = tokio::select! {
                biased;
                () = state.stop.cancelled() => break,
                Some(_) = connections.join_next() => continue,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    failures.succeeded();
                    if let Some(served) = doorman.receive(stream) {
                        connections.spawn(served);
                    }
                }
                Err(error) if is_peers(&error) => {}
                Err(error) => {
                    failures.failed(&AcceptError(error));
                    sleep(BREATH).await;
                }
            }
        }
        // Nobody new: whoever comes now is refused by the system.
        drop(self.listener);
        let drained = timeout(state.options.drain_timeout, async {
            while connections.join_next().await.is_some() {}
        });
        let _ = drained.await;
        // What was claimed for somebody who is gone by now goes back before the process does.
        let _ = timeout(GIVE_BACK_WITHIN, state.lines.settled()).await;
        Drained {
            cut: connections.len(),
        }
    }
}

/// Lets connections in, and turns away those that are too many.
///
/// They are told so (503, Retry-After) and not left to wait in the system's queue: a peer that waits cannot tell a full server from a dead one.
struct Doorman {
    state: State,
    protocol: Protocol,
    tls: Option<Tls>,
    places: Arc<Semaphore>,
    refusals: Arc<Semaphore>,
}

impl Doorman {
    fn new(state: &State, tls: Option<Tls>) -> Self {
        Self {
            protocol: Protocol::new(app(state.clone()), &state.options),
            places: Arc::new(Semaphore::new(state.options.max_connections)),
            refusals: Arc::new(Semaphore::new(REFUSED_AT_ONCE)),
            state: state.clone(),
            tls,
        }
    }

    /// What is to be done for a connection, if anything.
    fn receive(self: &Arc<Self>, stream: TcpStream) -> Option<impl Future<Output = ()> + use<>> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok();
        let refusal = if place.is_none() {
            self.state.telemetry.metrics.refused_connections.inc();
            // Over TLS it would have to be told in secret, which costs more than serving it.
            let refusal = Arc::clone(&self.refusals).try_acquire_owned().ok();
            Some(refusal.filter(|_| self.tls.is_none())?)
        } else {
            None
        };
        let doorman = Arc::clone(self);
        Some(async move {
            match (place, refusal) {
                (Some(place), _) => doorman.serve(stream, place).await,
                (None, Some(refusal)) => refuse(stream, refusal).await,
                (None, None) => {}
            }
        })
    }

    async fn serve(&self, stream: TcpStream, _place: OwnedSemaphorePermit) {
        let _open = Open::count(&self.state.telemetry.metrics.open_connections);
        let stop: &CancellationToken = &self.state.stop;
        // An answer goes out at once; if that cannot be had, it goes out a little later.
        let _ = stream.set_nodelay(true);
        match &self.tls {
            None => self.protocol.serve(stream, stop).await,
            Some(tls) => {
                let patience = self.state.options.header_timeout;
                let shaken = tokio::select! {
                    shaken = timeout(patience, tls.acceptor().accept(stream)) => shaken,
                    () = stop.cancelled() => return,
                };
                match shaken {
                    Ok(Ok(stream)) => self.protocol.serve(stream, stop).await,
                    Ok(Err(error)) => tracing::debug!(%error, "no TLS with a peer"),
                    Err(_) => tracing::debug!("no TLS with a peer in time"),
                }
            }
        }
    }
}

/// A connection that is counted for as long as it is open.
struct Open(Level);

impl Open {
    fn count(gauge: &Level) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// The answer to a connection that is one too many.
static FULL_HOUSE: LazyLock<String> = LazyLock::new(|| {
    let problem = Problem::new(Code::Overloaded, "it has as many connections as it can");
    let problem = problem.retry_after(REFUSED_FOR);
    let body = serde_json::to_string(&problem).unwrap_or_default();
    let length = body.len();
    format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n\
         retry-after: {REFUSED_FOR}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
});

/// Says that there are too many, and waits until it was heard: closing at once would take the answer back.
async fn refuse(mut stream: TcpStream, _refusal: OwnedSemaphorePermit) {
    let told = async {
        stream.write_all(FULL_HOUSE.as_bytes()).await?;
        stream.shutdown().await?;
        let mut unread = [0; 1024];
        while stream.read(&mut unread).await? > 0 {}
        io::Result::Ok(())
    };
    // Whoever does not listen is not waited for.
    let _ = timeout(REFUSED_WITHIN, told).await;
}

/// A connection that could not be accepted, and what to do.
#[derive(Debug, Error)]
#[error("{0}; if files have run out, raise the limit (ulimit -n) or lower server.max_connections")]
struct AcceptError(io::Error);

/// Whether the peer gave its connection up before it was accepted.
fn is_peers(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::ConnectionRefused
    )
}
