//! The listener: its limits and timeouts, and how it stops. Every wait is for an event, and bounded.

use crate::listening_server::{HEALTH, ListeningServer, SHORT, TIMEOUT};
use leasehold_server::{DrainReport, Server, ServerOptions};
use leasehold_testkit::{UnreadHttp2, eventually};
use std::time::Duration;
use tokio::net::TcpStream;

const WORKSPACE: &str = r#"{"name":"acme","plan":"FREE"}"#;

#[tokio::test]
async fn connection_serves_several_calls() {
    let server = ListeningServer::with(ServerOptions::default()).await;
    let mut peer = server.connect().await;
    for _ in 0..3 {
        peer.send(HEALTH).await;
        let (status, _, body) = peer.response().await;
        assert_eq!((status, body.as_str()), (200, r#"{"status":"ok"}"#));
    }
    assert_eq!(server.metric("leasehold_http_open_connections").await, 1.0);
}

#[tokio::test]
async fn header_timeout_closes_the_connection() {
    let options = ServerOptions {
        header_timeout: SHORT,
        ..ServerOptions::default()
    };
    let server = ListeningServer::with(options).await;
    for begun in ["", "G", "GET /healthz HTTP/1.1\r\nhost: x\r\nslow: ye"] {
        let mut peer = server.connect().await;
        peer.send(begun).await;
        let rest = peer.read_to_close().await;
        assert!(!rest.contains("200 OK"), "{rest}");
    }
    // Later headers have the same timeout, from their first byte.
    let mut peer = server.connect().await;
    peer.send(HEALTH).await;
    peer.response().await;
    peer.send("GET /heal").await;
    assert_eq!(peer.read_to_close().await, "");
}

#[tokio::test]
async fn idle_connection_is_closed() {
    let options = ServerOptions {
        idle_timeout: SHORT,
        ..ServerOptions::default()
    };
    let server = ListeningServer::with(options).await;
    let mut peer = server.connect().await;
    peer.send(HEALTH).await;
    assert_eq!(peer.response().await.0, 200);
    assert_eq!(peer.read_to_close().await, "");
}

#[tokio::test]
async fn headers_over_the_limit_are_rejected() {
    let options = ServerOptions {
        header_max_bytes: 8192,
        ..ServerOptions::default()
    };
    let server = ListeningServer::with(options).await;
    let mut peer = server.connect().await;
    let long = "x".repeat(10_000);
    peer.send(&format!("GET /healthz HTTP/1.1\r\nhost: x\r\nlong: {long}"))
        .await;
    assert!(peer.read_to_close().await.starts_with("HTTP/1.1 431"));
    let mut peer = server.connect().await;
    peer.send("this is no http\r\n\r\n").await;
    assert!(peer.read_to_close().await.starts_with("HTTP/1.1 400"));
}

#[tokio::test]
async fn slow_body_is_rejected_and_changes_nothing() {
    let options = ServerOptions {
        body_timeout: SHORT,
        ..ServerOptions::default()
    };
    let server = ListeningServer::with(options).await;
    let mut peer = server.begin(WORKSPACE.len()).await;
    peer.send(&WORKSPACE[..9]).await;
    let (status, _, body) = peer.response().await;
    assert_eq!(status, 408, "{body}");
    assert!(body.contains(r#""code":"body_too_slow""#), "{body}");
    peer.read_to_close().await;
    let listed = server
        .inner
        .get("/v1/workspaces", &server.inner.admin)
        .await;
    assert_eq!(listed.expect(200)["items"], serde_json::json!([]));
}

#[tokio::test]
async fn connection_over_the_limit_gets_503_until_one_closes() {
    let options = ServerOptions {
        max_connections: 4,
        ..ServerOptions::default()
    };
    let server = ListeningServer::with(options).await;
    let mut inside = Vec::new();
    // One address may open three quarters of the connections; the last quarter is kept for others.
    for (address, served) in [
        ("127.0.0.1", true),
        ("127.0.0.1", true),
        ("127.0.0.1", true),
        ("127.0.0.1", false),
        ("127.0.0.2", true),
        ("127.0.0.3", false),
    ] {
        let mut peer = server.connect_from(address).await;
        peer.send(HEALTH).await;
        let (status, head, body) = peer.response().await;
        if served {
            assert_eq!(status, 200, "{body}");
            inside.push(peer);
            continue;
        }
        assert_eq!(status, 503, "{body}");
        assert!(head.contains("retry-after: 1\r\n"), "{head}");
        assert!(body.contains(r#""code":"overloaded""#), "{body}");
    }
    assert_eq!(
        server
            .metric("leasehold_http_refused_connections_total")
            .await,
        2.0
    );

    inside.truncate(1);
    let served = eventually(TIMEOUT, async || {
        let mut peer = server.connect().await;
        peer.send(HEALTH).await;
        peer.response().await.0 == 200
    });
    assert!(served.await);
}

#[tokio::test]
async fn peer_that_does_not_read_is_disconnected() {
    let options = ServerOptions {
        write_timeout: SHORT,
        ..ServerOptions::default()
    };
    let server = ListeningServer::with(options).await;
    let mut peer = server.connect().await;
    let ask = "GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n";
    // More than the socket buffers hold.
    peer.send(&ask.repeat(500)).await;
    // The connection may be gone again when the test looks; its answered calls stay counted.
    let answered = async || {
        let shown = server.inner.get("/metrics", &server.inner.admin).await;
        shown.text.contains("route=\"/openapi.json\"")
    };
    assert!(eventually(TIMEOUT, answered).await);
    let open = async || server.metric("leasehold_http_open_connections").await;
    assert!(eventually(TIMEOUT, async || open().await == 0.0).await);
}

#[tokio::test]
async fn http2_peer_that_only_sends_pings_is_disconnected() {
    let options = ServerOptions {
        write_timeout: SHORT,
        ..ServerOptions::default()
    };
    let server = ListeningServer::with(options).await;
    for wide in [false, true] {
        let mut peer = UnreadHttp2::open(server.address, wide).await.unwrap();
        for _ in 0..100 {
            peer.get("/openapi.json", "none").await.unwrap();
        }
        assert!(peer.is_cut_off(TIMEOUT).await, "wide: {wide}");
        let open = async || server.metric("leasehold_http_open_connections").await;
        assert!(eventually(TIMEOUT, async || open().await == 0.0).await);
    }
}

#[tokio::test]
async fn stop_closes_idle_connections_and_drains_running_calls() {
    let server = ListeningServer::with(ServerOptions::default()).await;
    let mut idle = server.connect().await;
    idle.send(HEALTH).await;
    idle.response().await;
    let mut busy = server.begin(WORKSPACE.len()).await;
    busy.send(&WORKSPACE[..9]).await;

    server.inner.stop.cancel();
    assert_eq!(idle.read_to_close().await, "");
    let is_refused = async || TcpStream::connect(server.address).await.is_err();
    assert!(
        eventually(TIMEOUT, is_refused).await,
        "the server still listens"
    );
    let ready = server.inner.get("/readyz", "").await;
    ready.expect_problem("overloaded", "");
    busy.send(&WORKSPACE[9..]).await;
    let (status, _, body) = busy.response().await;
    assert_eq!(status, 201, "{body}");
    assert_eq!(busy.read_to_close().await, "");
    assert_eq!(server.stop().await, DrainReport { cut: 0 });
}

#[tokio::test]
async fn calls_over_the_drain_timeout_are_cut() {
    let options = ServerOptions {
        drain_timeout: SHORT,
        ..ServerOptions::default()
    };
    let server = ListeningServer::with(options).await;
    let mut stuck = server.begin(WORKSPACE.len()).await;
    assert_eq!(server.stop().await, DrainReport { cut: 1 });
    assert_eq!(stuck.read_to_close().await, "");
}

#[tokio::test]
async fn address_in_use_is_reported_with_what_to_do() {
    let first = Server::bind("127.0.0.1:0", None).await.unwrap();
    let address = first.address().to_string();
    let error = Server::bind(&address, None)
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains(&address) && error.contains("--listen"),
        "{error}"
    );
    let error = Server::bind("192.0.2.1:80", None)
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("192.0.2.1:80"), "{error}");
}

#[tokio::test]
async fn calls_over_the_limit_are_rejected_but_health_is_served() {
    let options = ServerOptions {
        calls_max: 1,
        body_timeout: Duration::from_secs(60),
        ..ServerOptions::default()
    };
    let server = ListeningServer::with(options).await;
    let mut busy = server.begin(WORKSPACE.len()).await;
    let inner = &server.inner;
    let refused = inner.get("/v1/me", &inner.admin).await;
    assert_eq!(refused.header("retry-after"), "1");
    refused.expect_problem("overloaded", "");
    inner.get("/healthz", "").await.expect(200);
    inner.get("/readyz", "").await.expect(200);
    busy.send(WORKSPACE).await;
    assert_eq!(busy.response().await.0, 201);
    inner.get("/v1/me", &inner.admin).await.expect(200);
}
