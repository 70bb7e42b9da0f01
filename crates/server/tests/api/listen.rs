//! The listener: what it takes, what it turns away, and how it stops. Every wait is for an event, and bounded.

use crate::listening::{HEALTH, Listening, PATIENCE, SHORT};
use leasehold_server::{Drained, Server, ServerOptions};
use leasehold_testkit::eventually;
use std::time::Duration;
use tokio::net::TcpStream;

const WORKSPACE: &str = r#"{"name":"acme","plan":"FREE"}"#;

#[tokio::test]
async fn calls_follow_each_other_on_one_connection() {
    let server = Listening::with(ServerOptions::default()).await;
    let mut peer = server.connect().await;
    for _ in 0..3 {
        peer.say(HEALTH).await;
        let (status, _, body) = peer.answer().await;
        assert_eq!((status, body.as_str()), (200, r#"{"status":"ok"}"#));
    }
    assert_eq!(server.metric("leasehold_http_open_connections").await, 1.0);
}

#[tokio::test]
async fn a_head_that_does_not_come_in_time_closes_the_connection() {
    let options = ServerOptions {
        header_timeout: SHORT,
        ..ServerOptions::default()
    };
    let server = Listening::with(options).await;
    for begun in ["", "G", "GET /healthz HTTP/1.1\r\nhost: x\r\nslow: ye"] {
        let mut peer = server.connect().await;
        peer.say(begun).await;
        let rest = peer.rest().await;
        assert!(!rest.contains("200 OK"), "{rest}");
    }
    // A later head has as long, from its first byte.
    let mut peer = server.connect().await;
    peer.say(HEALTH).await;
    peer.answer().await;
    peer.say("GET /heal").await;
    assert_eq!(peer.rest().await, "");
}

#[tokio::test]
async fn a_connection_that_stands_idle_is_closed() {
    let options = ServerOptions {
        idle_timeout: SHORT,
        ..ServerOptions::default()
    };
    let server = Listening::with(options).await;
    let mut peer = server.connect().await;
    peer.say(HEALTH).await;
    assert_eq!(peer.answer().await.0, 200);
    assert_eq!(peer.rest().await, "");
}

#[tokio::test]
async fn an_over_long_head_is_refused() {
    let options = ServerOptions {
        header_max_bytes: 8192,
        ..ServerOptions::default()
    };
    let server = Listening::with(options).await;
    let mut peer = server.connect().await;
    let long = "x".repeat(10_000);
    peer.say(&format!("GET /healthz HTTP/1.1\r\nhost: x\r\nlong: {long}"))
        .await;
    assert!(peer.rest().await.starts_with("HTTP/1.1 431"));
    let mut peer = server.connect().await;
    peer.say("this is no http\r\n\r\n").await;
    assert!(peer.rest().await.starts_with("HTTP/1.1 400"));
}

#[tokio::test]
async fn a_body_that_does_not_come_in_time_is_refused_and_nothing_is_made() {
    let options = ServerOptions {
        body_timeout: SHORT,
        ..ServerOptions::default()
    };
    let server = Listening::with(options).await;
    let mut peer = server.begin(WORKSPACE.len()).await;
    peer.say(&WORKSPACE[..9]).await;
    let (status, _, body) = peer.answer().await;
    assert_eq!(status, 408, "{body}");
    assert!(body.contains(r#""code":"body_too_slow""#), "{body}");
    peer.rest().await;
    let listed = server
        .ground
        .get("/v1/workspaces", &server.ground.admin)
        .await;
    assert_eq!(listed.expect(200)["items"], serde_json::json!([]));
}

#[tokio::test]
async fn one_connection_too_many_is_told_so_and_served_when_there_is_a_place() {
    let options = ServerOptions {
        max_connections: 2,
        ..ServerOptions::default()
    };
    let server = Listening::with(options).await;
    let mut inside = Vec::new();
    for _ in 0..2 {
        let mut peer = server.connect().await;
        peer.say(HEALTH).await;
        assert_eq!(peer.answer().await.0, 200);
        inside.push(peer);
    }
    let mut late = server.connect().await;
    late.say(HEALTH).await;
    let (status, head, body) = late.answer().await;
    assert_eq!(status, 503, "{body}");
    assert!(head.contains("retry-after: 1\r\n"), "{head}");
    assert!(body.contains(r#""code":"overloaded""#), "{body}");
    assert_eq!(
        server
            .metric("leasehold_http_refused_connections_total")
            .await,
        1.0
    );

    inside.pop();
    let served = eventually(PATIENCE, async || {
        let mut peer = server.connect().await;
        peer.say(HEALTH).await;
        peer.answer().await.0 == 200
    });
    assert!(served.await);
}

#[tokio::test]
async fn a_peer_that_does_not_read_its_answers_is_cut() {
    let options = ServerOptions {
        write_timeout: SHORT,
        ..ServerOptions::default()
    };
    let server = Listening::with(options).await;
    let mut peer = server.connect().await;
    let ask = "GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n";
    // More than sockets keep for somebody who does not read.
    peer.say(&ask.repeat(500)).await;
    let open = async || server.metric("leasehold_http_open_connections").await;
    assert!(eventually(PATIENCE, async || open().await == 1.0).await);
    assert!(eventually(PATIENCE, async || open().await == 0.0).await);
}

#[tokio::test]
async fn a_stop_ends_idle_connections_and_lets_a_call_under_way_end() {
    let server = Listening::with(ServerOptions::default()).await;
    let mut idle = server.connect().await;
    idle.say(HEALTH).await;
    idle.answer().await;
    let mut busy = server.begin(WORKSPACE.len()).await;
    busy.say(&WORKSPACE[..9]).await;

    server.ground.stop.cancel();
    assert_eq!(idle.rest().await, "");
    let nobody = async || TcpStream::connect(server.address).await.is_err();
    assert!(eventually(PATIENCE, nobody).await, "it still listens");
    let ready = server.ground.get("/readyz", "").await;
    ready.refused("overloaded", "");
    busy.say(&WORKSPACE[9..]).await;
    let (status, _, body) = busy.answer().await;
    assert_eq!(status, 201, "{body}");
    assert_eq!(busy.rest().await, "");
    assert_eq!(server.stopped().await, Drained { cut: 0 });
}

#[tokio::test]
async fn what_has_not_ended_in_time_is_cut() {
    let options = ServerOptions {
        drain_timeout: SHORT,
        ..ServerOptions::default()
    };
    let server = Listening::with(options).await;
    let mut stuck = server.begin(WORKSPACE.len()).await;
    assert_eq!(server.stopped().await, Drained { cut: 1 });
    assert_eq!(stuck.rest().await, "");
}

#[tokio::test]
async fn an_address_that_is_taken_is_named_with_what_to_do() {
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
async fn as_many_calls_as_there_may_be_are_served_at_once_and_health_is_always_told() {
    let options = ServerOptions {
        calls_max: 1,
        body_timeout: Duration::from_secs(60),
        ..ServerOptions::default()
    };
    let server = Listening::with(options).await;
    let mut busy = server.begin(WORKSPACE.len()).await;
    let ground = &server.ground;
    let refused = ground.get("/v1/me", &ground.admin).await;
    assert_eq!(refused.header("retry-after"), "1");
    refused.refused("overloaded", "");
    ground.get("/healthz", "").await.expect(200);
    ground.get("/readyz", "").await.expect(200);
    busy.say(WORKSPACE).await;
    assert_eq!(busy.answer().await.0, 201);
    ground.get("/v1/me", &ground.admin).await.expect(200);
}
