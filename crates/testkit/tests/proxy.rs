//! The fault proxy forwards, holds and drops bytes, on plain connections and on PostgreSQL's.
#![allow(clippy::unwrap_used)]

use std::io::ErrorKind;
use std::time::Duration;

use leasehold_testkit::{FaultProxy, TestPostgres, Traffic};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_postgres::NoTls;

const SETTING: &str = include_str!("sql/setting.sql");
const TIMEOUT: Duration = Duration::from_secs(120);

/// Starts a server that responds "ok" to everything and sends what it received to the channel; an empty text is the end of a connection.
async fn start_server() -> (String, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (received, inbox) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            let received = received.clone();
            tokio::spawn(async move {
                let mut buffer = [0; 1024];
                loop {
                    let bytes = client.read(&mut buffer).await.unwrap_or(0);
                    let text = String::from_utf8_lossy(&buffer[..bytes]).into_owned();
                    let ended = received.send(text).is_err() || bytes == 0;
                    if ended || client.write_all(b"ok").await.is_err() {
                        break;
                    }
                }
            });
        }
    });
    (address, inbox)
}

async fn receive(server: &mut mpsc::UnboundedReceiver<String>) -> String {
    tokio::time::timeout(TIMEOUT, server.recv())
        .await
        .unwrap()
        .unwrap()
}

async fn send(client: &mut TcpStream, text: &str) {
    client.write_all(text.as_bytes()).await.unwrap();
}

async fn response(client: &mut TcpStream) -> String {
    let mut response = [0; 2];
    tokio::time::timeout(TIMEOUT, client.read_exact(&mut response))
        .await
        .unwrap()
        .unwrap();
    String::from_utf8_lossy(&response).into_owned()
}

async fn is_reset(client: &mut TcpStream) -> bool {
    let end = tokio::time::timeout(TIMEOUT, client.read(&mut [0; 1])).await;
    end.unwrap()
        .is_err_and(|error| error.kind() == ErrorKind::ConnectionReset)
}

#[tokio::test]
async fn bytes_are_forwarded_and_counted() {
    let (address, mut server) = start_server().await;
    let proxy = FaultProxy::to(&address).await;
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    send(&mut client, "hello").await;
    assert_eq!(receive(&mut server).await, "hello");
    assert_eq!(response(&mut client).await, "ok");
    let expected = Traffic {
        request_bytes: 5,
        response_bytes: 2,
        connections: 1,
        ..Traffic::default()
    };
    assert_eq!(proxy.traffic(), expected);
    drop(client);
    assert_eq!(receive(&mut server).await, "");
}

#[tokio::test]
async fn held_requests_arrive_after_pass_also_on_new_connections() {
    let (address, mut server) = start_server().await;
    let proxy = FaultProxy::to(&address).await;
    let mut old = TcpStream::connect(proxy.address()).await.unwrap();
    send(&mut old, "before").await;
    assert_eq!(receive(&mut server).await, "before");
    assert_eq!(response(&mut old).await, "ok");

    proxy.hold_requests();
    let mut new = TcpStream::connect(proxy.address()).await.unwrap();
    send(&mut old, "old").await;
    proxy.wait_for_held_requests(3).await;
    send(&mut new, "new").await;
    proxy.wait_for_held_requests(6).await;
    assert!(server.try_recv().is_err());

    proxy.pass();
    let mut received = [receive(&mut server).await, receive(&mut server).await];
    received.sort();
    assert_eq!(received, ["new", "old"]);
    for client in [&mut old, &mut new] {
        assert_eq!(response(client).await, "ok");
    }
    assert_eq!(proxy.traffic().request_bytes_held, 0);
}

#[tokio::test]
async fn held_request_arrives_after_its_sender_disconnected() {
    let (address, mut server) = start_server().await;
    let proxy = FaultProxy::to(&address).await;
    proxy.hold_requests();
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    send(&mut client, "late").await;
    proxy.wait_for_held_requests(4).await;
    drop(client);
    proxy.pass();
    assert_eq!(receive(&mut server).await, "late");
    assert_eq!(receive(&mut server).await, "");
}

#[tokio::test]
async fn response_is_held_after_the_request_has_arrived() {
    let (address, mut server) = start_server().await;
    let proxy = FaultProxy::to(&address).await;
    proxy.hold_responses();
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    send(&mut client, "hello").await;
    assert_eq!(receive(&mut server).await, "hello");
    proxy.wait_for_held_responses(2).await;
    proxy.pass();
    assert_eq!(response(&mut client).await, "ok");
}

#[tokio::test]
async fn cut_resets_connections_and_drops_held_bytes() {
    let (address, mut server) = start_server().await;
    let proxy = FaultProxy::to(&address).await;
    proxy.hold_requests();
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    send(&mut client, "lost").await;
    proxy.wait_for_held_requests(4).await;
    proxy.cut();
    assert_eq!(proxy.traffic().request_bytes_held, 0);
    assert!(is_reset(&mut client).await);
    assert_eq!(receive(&mut server).await, "");

    proxy.pass();
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    send(&mut client, "again").await;
    assert_eq!(receive(&mut server).await, "again");
}

#[tokio::test]
async fn dropped_responses_and_requests_reset_their_connection() {
    let (address, mut server) = start_server().await;
    let proxy = FaultProxy::to(&address).await;
    proxy.drop_responses();
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    send(&mut client, "arrives").await;
    assert_eq!(receive(&mut server).await, "arrives");
    assert!(is_reset(&mut client).await);
    assert_eq!(receive(&mut server).await, "");

    proxy.pass();
    proxy.drop_requests();
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    send(&mut client, "never arrives").await;
    assert!(is_reset(&mut client).await);
    assert_eq!(receive(&mut server).await, "");
}

#[tokio::test]
async fn refusing_proxy_keeps_open_connections_and_reopens_its_port() {
    let (address, mut server) = start_server().await;
    let proxy = FaultProxy::to(&address).await;
    let mut open = TcpStream::connect(proxy.address()).await.unwrap();
    // Wait until the proxy has accepted: closing the port resets queued connections.
    proxy.wait_until(|traffic| traffic.connections == 1).await;
    proxy.refuse();
    let refused = TcpStream::connect(proxy.address()).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    send(&mut open, "open").await;
    assert_eq!(receive(&mut server).await, "open");

    proxy.accept_again();
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    send(&mut client, "back").await;
    assert_eq!(receive(&mut server).await, "back");
}

#[tokio::test]
async fn unreachable_server_causes_a_reset() {
    let (address, _server) = start_server().await;
    let gone = FaultProxy::to(&address).await;
    gone.refuse();
    let proxy = FaultProxy::to(&gone.address()).await;
    // The reset may arrive during the connect.
    match TcpStream::connect(proxy.address()).await {
        Ok(mut client) => assert!(is_reset(&mut client).await),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
}

#[tokio::test]
async fn postgres_query_is_held_answered_and_its_connection_cut() {
    let url = TestPostgres::shared().url();
    let config: tokio_postgres::Config = url.parse().unwrap();
    let address = format!("127.0.0.1:{}", config.get_ports()[0]);
    let proxy = FaultProxy::to(&address).await;
    let url = url.replace(&address, &proxy.address());
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    assert_eq!(proxy.traffic().connections, 1);

    proxy.hold_responses();
    let query = tokio::spawn(async move {
        let row = client.query_one(SETTING, &[&"fsync"]).await.unwrap();
        assert_eq!(row.get::<_, &str>(0), "on");
        client
    });
    proxy.wait_for_held_responses(1).await;
    assert!(!query.is_finished());
    proxy.pass();
    let client = query.await.unwrap();

    proxy.cut();
    assert!(connection.await.unwrap().is_err());
    assert!(client.query_one(SETTING, &[&"fsync"]).await.is_err());
}
