//! Malformed HTTP messages over a socket: hosts, line ends and framing on which a proxy and the server could disagree.

use crate::listening_server::{HEALTH, ListeningServer, Peer};
use leasehold_server::ServerOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A request that must not be answered: what follows a refused one.
const SMUGGLED: &str = "GET /healthz HTTP/1.1\r\nhost: smuggled\r\n\r\n";

async fn server() -> ListeningServer {
    ListeningServer::with(ServerOptions::default()).await
}

/// Sends the text in two pieces, so that the server may see a part of it first. Returns everything that the server answers until it closes.
async fn answers(server: &ListeningServer, text: &str, cut: usize) -> String {
    let mut peer = server.connect().await;
    let (begin, rest) = text.split_at(cut.min(text.len()));
    peer.send(begin).await;
    // The server may have closed the connection after the first piece.
    let _ = peer.0.flush().await;
    let _ = peer.0.write_all(rest.as_bytes()).await;
    peer.read_to_close().await
}

/// Asserts that the server answers 400 once and closes the connection.
async fn assert_refused(server: &ListeningServer, text: &str) {
    for cut in [0, text.len() / 2] {
        let all = answers(server, text, cut).await;
        assert!(all.starts_with("HTTP/1.1 400 "), "{text:?}: {all}");
        assert_eq!(all.matches("HTTP/1.1 ").count(), 1, "{text:?}: {all}");
    }
}

#[tokio::test]
async fn bare_lf_in_a_head_is_refused() {
    let server = server().await;
    for head in [
        "GET /healthz HTTP/1.1\nhost: x\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nhost: x\n\r\n",
        "GET /healthz HTTP/1.1\r\nhost: x\r\n\n",
        "GET /healthz HTTP/1.1\r\nhost: x\na: b\r\n\r\n",
        "GET /healthz HTTP/1.1\nhost: x\n\n",
        "\nGET /healthz HTTP/1.1\r\nhost: x\r\n\r\n",
        "GET /healthz HTTP/1.0\n\n",
    ] {
        assert_refused(&server, &format!("{head}{SMUGGLED}")).await;
    }
    // After a request on the same connection, in one piece and in two.
    let second = "GET /healthz HTTP/1.1\r\nhost: x\n\r\n";
    for cut in [0, HEALTH.len(), HEALTH.len() + 30] {
        let all = answers(&server, &format!("{HEALTH}{second}{SMUGGLED}"), cut).await;
        let statuses: Vec<&str> = all
            .split("HTTP/1.1 ")
            .skip(1)
            .map(|one| &one[..3])
            .collect();
        assert_eq!(statuses, ["200", "400"], "{all}");
    }
}

#[tokio::test]
async fn lines_may_arrive_in_pieces_and_heads_in_one() {
    let server = server().await;
    let mut peer = server.connect().await;
    for byte in format!("\r\n{HEALTH}").chars() {
        peer.send(&byte.to_string()).await;
    }
    assert_eq!(peer.response().await.0, 200);
    let body = r#"{"name":"acme","plan":"FREE"}"#;
    let key = &server.inner.admin;
    let head = format!(
        "POST /v1/workspaces HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n"
    );
    let sized = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    let (first, second) = body.split_at(9);
    let chunked = format!(
        "{head}transfer-encoding: chunked\r\n\r\n{:x};a=b\r\n{first}\r\n{:X}\r\n{second}\r\n0\r\nx: y\r\n\r\n",
        first.len(),
        second.len()
    );
    peer.send(&format!("{HEALTH}{sized}{HEALTH}{chunked}{HEALTH}"))
        .await;
    // The second workspace of this name is a conflict: both bodies were read.
    for status in [200, 201, 200, 409, 200] {
        let (found, _, body) = peer.response().await;
        assert_eq!(found, status, "{body}");
    }
}

#[tokio::test]
async fn bare_lf_in_a_chunked_body_is_refused_and_changes_nothing() {
    let server = server().await;
    let key = &server.inner.admin;
    let body = r#"{"name":"acme","plan":"FREE"}"#;
    let size = format!("{:x}", body.len());
    for chunks in [
        format!("{size}\n{body}\r\n0\r\n\r\n"),
        format!("{size};a=b\n{body}\r\n0\r\n\r\n"),
        format!("{size}\r\n{body}\n0\r\n\r\n"),
        format!("{size}\r\n{body}\r\n0\n\r\n"),
        format!("{size}\r\n{body}\r\n0;a\n\r\n"),
        format!("{size}\r\n{body}\r\n0\r\n\n"),
        format!("{size}\r\n{body}\r\n0\r\nx: y\n\r\n"),
        format!("{size}\r\n{body}\r\n0\r\nx: y\nz: a\r\n\r\n"),
    ] {
        let text = format!(
            "POST /v1/workspaces HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n{chunks}{SMUGGLED}"
        );
        assert_refused(&server, &text).await;
    }
    let listed = server.inner.get("/v1/workspaces", key).await;
    assert_eq!(listed.expect(200)["items"], serde_json::json!([]));
}

#[tokio::test]
async fn request_without_one_valid_host_is_refused() {
    let server = server().await;
    for hosts in [
        "",
        "host: a\r\nhost: a\r\n",
        "host: a\r\nHost: b\r\n",
        "host: a b\r\n",
    ] {
        let mut peer = server.connect().await;
        peer.send(&format!("GET /healthz HTTP/1.1\r\n{hosts}\r\n"))
            .await;
        let (status, head, body) = peer.response().await;
        assert_eq!(status, 400, "{hosts:?}: {body}");
        assert!(head.contains("application/problem+json"), "{head}");
        assert!(body.contains(r#""path":"host""#), "{body}");
    }
    let mut peer = server.connect().await;
    peer.send("GET /healthz HTTP/1.0\r\n\r\n").await;
    assert_eq!(peer.response().await.0, 200, "HTTP/1.0 needs no host");
}

#[tokio::test]
async fn malformed_headers_are_refused() {
    let server = server().await;
    for header in [
        "a: b\r\n c",
        "a: b\r\n\tc",
        "a : b",
        " a: b",
        "a",
        "a\0: b",
        "a: \0",
        "a: b\rc",
        "content-length: 1\r\ncontent-length: 2",
        "content-length: +1",
        "content-length: 1, 1",
        "transfer-encoding: gzip",
        "transfer-encoding: chunked, identity",
        "transfer-encoding: xchunked",
    ] {
        let text = format!("GET /healthz HTTP/1.1\r\nhost: x\r\n{header}\r\n\r\n{SMUGGLED}");
        assert_refused(&server, &text).await;
    }
}

#[tokio::test]
async fn chunks_override_a_length_and_close_the_connection() {
    let server = server().await;
    for headers in [
        "content-length: 3\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked\r\ncontent-length: 3",
    ] {
        let text =
            format!("GET /healthz HTTP/1.1\r\nhost: x\r\n{headers}\r\n\r\n0\r\n\r\n{SMUGGLED}");
        let all = answers(&server, &text, 0).await;
        assert!(all.starts_with("HTTP/1.1 200 "), "{headers}: {all}");
        assert_eq!(all.matches("HTTP/1.1 ").count(), 1, "{headers}: {all}");
    }
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend_from_slice(&[kind, flags, 0, 0, 0, stream]);
    frame.extend_from_slice(payload);
    frame
}

/// Sends a GET of `/healthz` over HTTP/2 with these header fields in HPACK. Returns the first byte of the response's header block.
async fn http2_status(server: &ListeningServer, fields: &[u8]) -> u8 {
    const SETTINGS: u8 = 4;
    const HEADERS: u8 = 1;
    const END_STREAM_AND_HEADERS: u8 = 5;
    let mut block = b"\x82\x86\x04\x08/healthz".to_vec();
    block.extend_from_slice(fields);
    let mut text = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    text.extend(frame(SETTINGS, 0, 0, &[]));
    text.extend(frame(HEADERS, END_STREAM_AND_HEADERS, 1, &block));
    let mut peer: Peer<TcpStream> = server.connect().await;
    peer.0.write_all(&text).await.unwrap();
    loop {
        let mut head = [0; 9];
        peer.0.read_exact(&mut head).await.unwrap();
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        peer.0.read_exact(&mut payload).await.unwrap();
        if head[3] == HEADERS {
            return payload[0];
        }
    }
}

/// Indexes of `:status` 200 and 400 in HPACK's static table.
const OK: u8 = 0x88;
const BAD_REQUEST: u8 = 0x8c;

#[tokio::test]
async fn http2_request_must_name_one_host() {
    let server = server().await;
    let authority = b"\x01\x01x";
    let host = b"\x0f\x17\x01x";
    let other = b"\x0f\x17\x01y";
    assert_eq!(http2_status(&server, authority).await, OK);
    assert_eq!(http2_status(&server, host).await, OK);
    let both = [&authority[..], &host[..]].concat();
    assert_eq!(http2_status(&server, &both).await, OK);
    assert_eq!(http2_status(&server, b"").await, BAD_REQUEST);
    let differ = [&authority[..], &other[..]].concat();
    assert_eq!(http2_status(&server, &differ).await, BAD_REQUEST);
    let twice = [&host[..], &host[..]].concat();
    assert_eq!(http2_status(&server, &twice).await, BAD_REQUEST);
}

/// A short header takes a hundred times its bytes in memory: 1,900 of them fit into the limit of bytes.
#[tokio::test]
async fn request_with_more_than_a_hundred_headers_is_refused() {
    let server = server().await;
    let authority = b"\x01\x01x";
    for (headers, status) in [(100, OK), (101, BAD_REQUEST), (1_500, BAD_REQUEST)] {
        let fields = [&authority[..], &b"\x00\x01a\x00".repeat(headers)].concat();
        let found = http2_status(&server, &fields).await;
        assert_eq!(found, status, "{headers} headers in HTTP/2");
    }
    for (headers, status) in [(98, "200"), (99, "431")] {
        let fields = "a:\r\n".repeat(headers);
        let text = format!("GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{fields}\r\n");
        let all = answers(&server, &text, 0).await;
        assert!(
            all.starts_with(&format!("HTTP/1.1 {status} ")),
            "{headers} headers in HTTP/1: {all}"
        );
    }
}
