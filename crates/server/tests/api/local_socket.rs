//! The Unix socket of the listener: the same API and limits as over TCP, without TLS, and with connections of its own.

use crate::listening_server::{HEALTH, Peer, TIMEOUT};
use leasehold_server::{DrainReport, Server, ServerOptions, Tls};
use leasehold_testbed::TestServer;
use leasehold_testkit::{TempDir, temp_dir};
use rcgen::generate_simple_self_signed;
use std::net::SocketAddr;
use std::path::PathBuf;
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// A server that listens on a port and on a socket.
struct SocketServer {
    inner: TestServer,
    address: SocketAddr,
    serving: JoinHandle<DrainReport>,
    directory: TempDir,
}

impl SocketServer {
    async fn with(options: ServerOptions, tls: bool) -> Self {
        let directory = temp_dir();
        let inner = TestServer::with_options(options).await;
        let tls = tls.then(|| certificate(&directory));
        let server = Server::bind("127.0.0.1:0", tls).await.unwrap();
        let socket = UnixListener::bind(directory.path().join("socket")).unwrap();
        let address = server.address();
        let serving = server.with_local_socket(socket).serve(inner.state.clone());
        Self {
            address,
            serving: tokio::spawn(serving),
            directory,
            inner,
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    async fn connect(&self) -> Peer<UnixStream> {
        Peer(UnixStream::connect(self.path()).await.unwrap())
    }
}

fn certificate(directory: &TempDir) -> Tls {
    let generated = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let path = |name| directory.path().join(name);
    std::fs::write(path("certificate"), generated.cert.pem()).unwrap();
    std::fs::write(path("key"), generated.signing_key.serialize_pem()).unwrap();
    Tls::read(&path("certificate"), &path("key")).unwrap()
}

#[tokio::test]
async fn calls_over_the_socket_need_a_key_and_no_tls() {
    let server = SocketServer::with(ServerOptions::default(), true).await;
    let mut peer = server.connect().await;
    for (key, status) in [(server.inner.admin.as_str(), 200), ("", 401)] {
        let call = format!("GET /v1/me HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\r\n");
        peer.send(&call).await;
        assert_eq!(peer.response().await.0, status);
    }
}

#[tokio::test]
async fn full_tcp_listener_leaves_the_socket_free() {
    let options = ServerOptions {
        max_connections: 1,
        ..ServerOptions::default()
    };
    let server = SocketServer::with(options, false).await;
    let mut first = Peer(TcpStream::connect(server.address).await.unwrap());
    first.send(HEALTH).await;
    assert_eq!(first.response().await.0, 200);
    let mut second = Peer(TcpStream::connect(server.address).await.unwrap());
    assert_eq!(second.response().await.0, 503);
    let mut local = server.connect().await;
    local.send(HEALTH).await;
    assert_eq!(local.response().await.0, 200);
}

#[tokio::test]
async fn stop_drains_the_connections_of_the_socket() {
    let server = SocketServer::with(ServerOptions::default(), false).await;
    let mut idle = server.connect().await;
    idle.send(HEALTH).await;
    assert_eq!(idle.response().await.0, 200);
    server.inner.stop.cancel();
    let report = timeout(TIMEOUT, server.serving).await.unwrap().unwrap();
    assert_eq!(report, DrainReport { cut: 0 });
    assert_eq!(idle.read_to_close().await, "");
    assert!(
        UnixStream::connect(server.directory.path().join("socket"))
            .await
            .is_err()
    );
}
