//! A server on a socket, and raw connections to it.

use leasehold_server::{DrainReport, ServerOptions, Tls};
use leasehold_testbed::TestServer;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Long enough for a slow machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);

/// A timeout under test, short to keep the tests fast, and longer than usual pauses of a busy machine.
pub(crate) const SHORT: Duration = Duration::from_secs(1);

pub(crate) const HEALTH: &str = "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";

/// A server that listens on its own port.
pub(crate) struct ListeningServer {
    pub(crate) inner: TestServer,
    pub(crate) address: SocketAddr,
    pub(crate) serving: JoinHandle<DrainReport>,
}

impl ListeningServer {
    pub(crate) async fn with(options: ServerOptions) -> Self {
        Self::over(options, None).await
    }

    pub(crate) async fn over(options: ServerOptions, tls: Option<Tls>) -> Self {
        let server = TestServer::with_options(options).await;
        let (address, serving) = server.serve(tls).await;
        Self {
            address,
            serving,
            inner: server,
        }
    }

    pub(crate) async fn connect(&self) -> Peer<TcpStream> {
        Peer(TcpStream::connect(self.address).await.unwrap())
    }

    /// Connects from this local address.
    pub(crate) async fn connect_from(&self, address: &str) -> Peer<TcpStream> {
        let socket = TcpSocket::new_v4().unwrap();
        let local = SocketAddr::new(address.parse().unwrap(), 0);
        socket.bind(local).unwrap();
        Peer(socket.connect(self.address).await.unwrap())
    }

    /// Opens a connection and sends the headers of a call that creates a workspace with a body of `length` bytes.
    pub(crate) async fn begin(&self, length: usize) -> Peer<TcpStream> {
        let key = &self.inner.admin;
        let head = format!(
            "POST /v1/workspaces HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\nexpect: 100-continue\r\n\r\n"
        );
        let mut peer = self.connect().await;
        peer.send(&head).await;
        assert_eq!(peer.response().await.0, 100);
        peer
    }

    /// Returns the value of a metric.
    pub(crate) async fn metric(&self, name: &str) -> f64 {
        let shown = self.inner.get("/metrics", &self.inner.admin).await.text;
        let line = shown
            .lines()
            .find(|line| line.starts_with(&format!("{name} ")));
        let line = line.unwrap_or_else(|| panic!("no {name} in {shown}"));
        line.rsplit_once(' ').unwrap().1.parse().unwrap()
    }

    /// Stops the server and waits for its end.
    pub(crate) async fn stop(self) -> DrainReport {
        self.inner.stop.cancel();
        timeout(TIMEOUT, self.serving).await.unwrap().unwrap()
    }
}

/// A raw client connection.
pub(crate) struct Peer<S>(pub(crate) S);

impl<S: AsyncRead + tokio::io::AsyncWrite + Unpin> Peer<S> {
    pub(crate) async fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// Reads the next response: status, headers and body.
    pub(crate) async fn response(&mut self) -> (u16, String, String) {
        timeout(TIMEOUT, self.read_response()).await.unwrap()
    }

    async fn read_response(&mut self) -> (u16, String, String) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let byte = self.0.read_u8().await;
            head.push(byte.unwrap_or_else(|_| {
                panic!("connection closed: {}", String::from_utf8_lossy(&head))
            }));
        }
        let head = String::from_utf8(head).unwrap().to_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let length = head.split("content-length: ").nth(1);
        let length = length.map_or(0, |rest| {
            rest.split("\r\n").next().unwrap().parse().unwrap()
        });
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).await.unwrap();
        (status, head, String::from_utf8(body).unwrap())
    }

    /// Reads until the server closes the connection; fails if it does not in time.
    pub(crate) async fn read_to_close(&mut self) -> String {
        let mut all = Vec::new();
        // An aborted connection may end in an error.
        let _ = timeout(TIMEOUT, self.0.read_to_end(&mut all))
            .await
            .expect("the connection stays open");
        String::from_utf8_lossy(&all).into_owned()
    }
}
