//! The server on a socket, and callers that speak to it byte by byte.

use leasehold_server::{Drained, ServerOptions, Tls};
use leasehold_testbed::TestServer;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Long enough for a slow machine; what is waited for comes much sooner.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Short enough not to be waited for.
pub(crate) const SHORT: Duration = Duration::from_millis(300);

pub(crate) const HEALTH: &str = "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";

/// A server that listens on a port of its own.
pub(crate) struct Listening {
    pub(crate) ground: TestServer,
    pub(crate) address: SocketAddr,
    pub(crate) serving: JoinHandle<Drained>,
}

impl Listening {
    pub(crate) async fn with(options: ServerOptions) -> Self {
        Self::over(options, None).await
    }

    pub(crate) async fn over(options: ServerOptions, tls: Option<Tls>) -> Self {
        let ground = TestServer::with_options(options).await;
        let (address, serving) = ground.serve(tls).await;
        Self {
            address,
            serving,
            ground,
        }
    }

    pub(crate) async fn connect(&self) -> Peer<TcpStream> {
        Peer(TcpStream::connect(self.address).await.unwrap())
    }

    /// A connection with a call on it that makes a workspace, whose body of so many bytes is waited for.
    pub(crate) async fn begin(&self, length: usize) -> Peer<TcpStream> {
        let key = &self.ground.admin;
        let head = format!(
            "POST /v1/workspaces HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\nexpect: 100-continue\r\n\r\n"
        );
        let mut peer = self.connect().await;
        peer.say(&head).await;
        assert_eq!(peer.answer().await.0, 100);
        peer
    }

    /// What one of its metrics says.
    pub(crate) async fn metric(&self, name: &str) -> f64 {
        let shown = self.ground.get("/metrics", &self.ground.admin).await.text;
        let line = shown
            .lines()
            .find(|line| line.starts_with(&format!("{name} ")));
        let line = line.unwrap_or_else(|| panic!("no {name} in {shown}"));
        line.rsplit_once(' ').unwrap().1.parse().unwrap()
    }

    /// Tells it to stop and waits for its end.
    pub(crate) async fn stopped(self) -> Drained {
        self.ground.stop.cancel();
        timeout(PATIENCE, self.serving).await.unwrap().unwrap()
    }
}

/// Somebody who calls.
pub(crate) struct Peer<S>(pub(crate) S);

impl<S: AsyncRead + tokio::io::AsyncWrite + Unpin> Peer<S> {
    pub(crate) async fn say(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// The next answer: its status, its head and its body.
    pub(crate) async fn answer(&mut self) -> (u16, String, String) {
        timeout(PATIENCE, self.read_answer()).await.unwrap()
    }

    async fn read_answer(&mut self) -> (u16, String, String) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let byte = self.0.read_u8().await;
            head.push(
                byte.unwrap_or_else(|_| panic!("broke off: {}", String::from_utf8_lossy(&head))),
            );
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

    /// All that still comes until the other side closes, which must be in time.
    pub(crate) async fn rest(&mut self) -> String {
        let mut all = Vec::new();
        // A connection that is cut may end in an error, which is an end too.
        let _ = timeout(PATIENCE, self.0.read_to_end(&mut all))
            .await
            .expect("the connection stays open");
        String::from_utf8_lossy(&all).into_owned()
    }
}
