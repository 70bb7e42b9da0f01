//! A TCP proxy that can hold back the server's responses, break connections, or stop accepting. Knows no protocol.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// A loopback connection attempt that takes longer than this has found a full backlog.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Forward,
    HoldResponses,
}

pub(crate) struct Proxy {
    listener: Arc<TcpListener>,
    address: SocketAddr,
    mode: watch::Sender<Mode>,
    /// The accept loop, which owns all connections.
    task: tokio::task::JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn to(server: &str) -> Self {
        let listener = Arc::new(TcpListener::bind("127.0.0.1:0").await.unwrap());
        let accepting = Arc::clone(&listener);
        let address = listener.local_addr().unwrap();
        let mode = watch::Sender::new(Mode::Forward);
        let (watched, server) = (mode.subscribe(), server.to_owned());
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (client, _) = accepting.accept().await.unwrap();
                let server = TcpStream::connect(&server).await.unwrap();
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                connections.spawn(forward(from_client, to_server));
                connections.spawn(forward_responses(from_server, to_client, watched.clone()));
            }
        });
        Self {
            listener,
            address,
            mode,
            task,
        }
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Forwards requests but holds back responses from now on.
    pub(crate) fn hold_responses(&self) {
        self.mode.send_replace(Mode::HoldResponses);
    }

    /// Forwards the held and all later responses.
    pub(crate) fn release_responses(&self) {
        self.mode.send_replace(Mode::Forward);
    }

    /// Breaks all connections; later connection attempts hang.
    pub(crate) async fn blackhole_connections(self) -> Blackhole {
        self.task.abort();
        let _ = self.task.await;
        Blackhole::of(self.listener).await
    }
}

/// A port where connecting hangs: its accept backlog is full, so the system drops further connections.
pub(crate) struct Blackhole {
    _listener: Arc<TcpListener>,
    _filling: Vec<TcpStream>,
}

impl Blackhole {
    /// Keeps the socket: a port that is closed and bound again may be taken in between.
    async fn of(listener: Arc<TcpListener>) -> Self {
        rustix::net::listen(&listener, 0).unwrap();
        let address = listener.local_addr().unwrap();
        let mut filling = Vec::new();
        while let Ok(stream) = timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
            filling.push(stream.unwrap());
        }
        Self {
            _listener: listener,
            _filling: filling,
        }
    }
}

async fn forward(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) {
    let _ = tokio::io::copy(&mut from, &mut to).await;
}

async fn forward_responses(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut mode: watch::Receiver<Mode>,
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let _ = mode.wait_for(|mode| *mode == Mode::Forward).await;
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
