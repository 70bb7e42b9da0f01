//! The fault proxy: what passes, what is held, what is lost, on plain connections and on PostgreSQL's.
#![allow(clippy::unwrap_used)]

use std::io::ErrorKind;
use std::time::Duration;

use leasehold_testkit::{FaultProxy, TestPostgres, Traffic};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_postgres::NoTls;

const SETTING: &str = include_str!("sql/setting.sql");
const LIMIT: Duration = Duration::from_secs(30);

/// A server that says "ok" to everything, and tells the test what it heard; an empty text is the end of a connection.
async fn start_server() -> (String, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (heard, inbox) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            let heard = heard.clone();
            tokio::spawn(async move {
                let mut buffer = [0; 1024];
                loop {
                    let bytes = client.read(&mut buffer).await.unwrap_or(0);
                    let text = String::from_utf8_lossy(&buffer[..bytes]).into_owned();
                    let ended = heard.send(text).is_err() || bytes == 0;
                    if ended || client.write_all(b"ok").await.is_err() {
                        break;
                    }
                }
            });
        }
    });
    (address, inbox)
}

async fn hear(server: &mut mpsc::UnboundedReceiver<String>) -> String {
    tokio::time::timeout(LIMIT, server.recv())
        .await
        .unwrap()
        .unwrap()
}

async fn say(client: &mut TcpStream, text: &str) {
    client.write_all(text.as_bytes()).await.unwrap();
}

async fn answer(client: &mut TcpStream) -> String {
    let mut answer = [0; 2];
    tokio::time::timeout(LIMIT, client.read_exact(&mut answer))
        .await
        .unwrap()
        .unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

async fn is_reset(client: &mut TcpStream) -> bool {
    let end = tokio::time::timeout(LIMIT, client.read(&mut [0; 1])).await;
    end.unwrap()
        .is_err_and(|error| error.kind() == ErrorKind::ConnectionReset)
}

#[tokio::test]
async fn everything_passes_and_is_counted() {
    let (address, mut server) = start_server().await;
    let proxy = FaultProxy::to(&address).await;
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    say(&mut client, "hello").await;
    assert_eq!(hear(&mut server).await, "hello");
    assert_eq!(answer(&mut client).await, "ok");
    let expected = Traffic {
        requests_seen: 5,
        answers_seen: 2,
        connections: 1,
        ..Traffic::default()
    };
    assert_eq!(proxy.traffic(), expected);
    drop(client);
    assert_eq!(hear(&mut server).await, "");
}

#[tokio::test]
async fn held_requests_arrive_when_passing_again_also_on_new_connections() {
    let (address, mut server) = start_server().await;
    let proxy = FaultProxy::to(&address).await;
    let mut old = TcpStream::connect(proxy.address()).await.unwrap();
    say(&mut old, "before").await;
    assert_eq!(hear(&mut server).await, "before");
    assert_eq!(answer(&mut old).await, "ok");

    proxy.hold_requests();
    let mut new = TcpStream::connect(proxy.address()).await.unwrap();
    say(&mut old, "old").await;
    proxy.held_requests(3).await;
    say(&mut new, "new").await;
    proxy.held_requests(6).await;
    assert!(server.try_recv().is_err());

    proxy.pass();
    let mut heard = [hear(&mut server).await, hear(&mut server).await];
    heard.sort();
    assert_eq!(heard, ["new", "old"]);
    for client in [&mut old, &mut new] {
        assert_eq!(answer(client).await, "ok");
    }
    assert_eq!(proxy.traffic().requests_held, 0);
}

#[tokio::test]
async fn a_held_request_arrives_though_its_sender_is_gone() {
    let (address, mut server) = start_server().await;
    let proxy = FaultProxy::to(&address).await;
    proxy.hold_requests();
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    say(&mut client, "late").await;
    proxy.held_requests(4).await;
    drop(client);
    proxy.pass();
    assert_eq!(hear(&mut server).await, "late");
    assert_eq!(hear(&mut server).await, "");
}

#[tokio::test]
async fn an_answer_is_held_after_the_request_has_arrived() {
    let (address, mut server) = start_server().await;
    let proxy = FaultProxy::to(&address).await;
    proxy.hold_answers();
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    say(&mut client, "hello").await;
    assert_eq!(hear(&mut server).await, "hello");
    proxy.held_answers(2).await;
    proxy.pass();
    assert_eq!(answer(&mut client).await, "ok");
}

#[tokio::test]
async fn a_cut_resets_all_and_loses_what_was_held() {
    let (address, mut server) = start_server().await;
    let proxy = FaultProxy::to(&address).await;
    proxy.hold_requests();
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    say(&mut client, "lost").await;
    proxy.held_requests(4).await;
    proxy.cut();
    assert_eq!(proxy.traffic().requests_held, 0);
    assert!(is_reset(&mut client).await);
    assert_eq!(hear(&mut server).await, "");

    proxy.pass();
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    say(&mut client, "again").await;
    assert_eq!(hear(&mut server).await, "again");
}

#[tokio::test]
async fn dropped_answers_and_requests_reset_their_connection() {
    let (address, mut server) = start_server().await;
    let proxy = FaultProxy::to(&address).await;
    proxy.drop_answers();
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    say(&mut client, "arrives").await;
    assert_eq!(hear(&mut server).await, "arrives");
    assert!(is_reset(&mut client).await);
    assert_eq!(hear(&mut server).await, "");

    proxy.pass();
    proxy.drop_requests();
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    say(&mut client, "never arrives").await;
    assert!(is_reset(&mut client).await);
    assert_eq!(hear(&mut server).await, "");
}

#[tokio::test]
async fn a_refusing_proxy_keeps_open_connections_and_comes_back_on_its_port() {
    let (address, mut server) = start_server().await;
    let proxy = FaultProxy::to(&address).await;
    let mut open = TcpStream::connect(proxy.address()).await.unwrap();
    // Accepted, not only queued: a closed port resets those.
    proxy.until(|traffic| traffic.connections == 1).await;
    proxy.refuse();
    let refused = TcpStream::connect(proxy.address()).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    say(&mut open, "open").await;
    assert_eq!(hear(&mut server).await, "open");

    proxy.accept_again();
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    say(&mut client, "back").await;
    assert_eq!(hear(&mut server).await, "back");
}

#[tokio::test]
async fn a_server_that_is_gone_is_a_reset() {
    let (address, _server) = start_server().await;
    let gone = FaultProxy::to(&address).await;
    gone.refuse();
    let proxy = FaultProxy::to(&gone.address()).await;
    // It may come as early as that.
    match TcpStream::connect(proxy.address()).await {
        Ok(mut client) => assert!(is_reset(&mut client).await),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
}

#[tokio::test]
async fn a_query_to_postgresql_is_held_and_answered_and_its_connection_cut() {
    let url = TestPostgres::shared().url();
    let config: tokio_postgres::Config = url.parse().unwrap();
    let address = format!("127.0.0.1:{}", config.get_ports()[0]);
    let proxy = FaultProxy::to(&address).await;
    let url = url.replace(&address, &proxy.address());
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    assert_eq!(proxy.traffic().connections, 1);

    proxy.hold_answers();
    let query = tokio::spawn(async move {
        let row = client.query_one(SETTING, &[&"fsync"]).await.unwrap();
        assert_eq!(row.get::<_, &str>(0), "on");
        client
    });
    proxy.held_answers(1).await;
    assert!(!query.is_finished());
    proxy.pass();
    let client = query.await.unwrap();

    proxy.cut();
    assert!(connection.await.unwrap().is_err());
    assert!(client.query_one(SETTING, &[&"fsync"]).await.is_err());
}
