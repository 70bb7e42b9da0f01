//! Fuzz tests of the parsers of a caller's input: bodies, cursors, hosts and the lines of HTTP/1 messages.

use crate::api_error::ApiError;
use crate::cursors::tests::test_cursors;
use crate::line_scanner::{Framing, LineScanner, Stop};
use crate::{body, host};
use axum::http::{HeaderValue, Request, header::HOST};
use axum::response::IntoResponse;
use leasehold_api::definition::NewVersion;
use leasehold_api::job::{FinishBatch, NewJobs};
use leasehold_api::key::NewKey;
use leasehold_api::request::NewRequests;
use leasehold_core::RequestId;
use leasehold_testkit::Fuzzer;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

const BODIES: &[&str] = &[
    r#"{"requests":[{"definition":"00000000-0000-0000-0000-000000000001","params":{"a":[1]},"priority":-5,"run_at":"2026-03-01T12:00:00Z",
        "idempotency_key":"k","dedupe_window_ms":1000}]}"#,
    r#"{"body":{"graph":{"nodes":[{"id":"a","type":"delay","milliseconds":1}],"edges":[]}},"params_schema":{"type":"object"},"execution_timeout_ms":5}"#,
    r#"{"body":{"binding":{"workflow_type":"Order","task_queue":"orders"}}}"#,
    r#"{"jobs":[{"kind":"k","payload":{"a":1},"priority":1,"run_at":"2026-03-01T12:00:00Z","dedup_key":"d"}]}"#,
    r#"{"worker":"w","finishes":[{"id":1,"token":3,"outcome":"failed","error":"e","retry":false,"after_ms":5}]}"#,
    r#"{"name":"n","scope":{"kind":"worker","queues":["a"]}}"#,
];
const TOKENS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    "null",
    "true",
    "-1",
    "1e400",
    "99999999999999999999",
    "0.5",
    "\\u0000",
    "\\ud800",
    "\0",
    "\u{e4}",
    "\"name\"",
    "\"queues\"",
    "\"params\"",
    "\"requests\"",
    "\"jobs\"",
    "2026-13-01T00:00:00Z",
    "\"extra\":1,",
];

/// Parses a body as this type. A valid body is JSON, and can be written and parsed again. An invalid one gets a status that blames the caller.
fn parse<T: DeserializeOwned + Serialize>(bytes: &[u8]) -> Result<(), u16> {
    let value: T = body::parse(bytes).map_err(status)?;
    assert!(serde_json::from_slice::<Value>(bytes).is_ok());
    let text = serde_json::to_vec(&value).expect("it can be written");
    assert!(body::parse::<T>(&text).is_ok());
    Ok(())
}

fn status(error: ApiError) -> u16 {
    let status = error.into_response().status();
    assert!(status.is_client_error(), "{status}");
    status.as_u16()
}

#[test]
fn bodies() {
    Fuzzer::new(BODIES).tokens(TOKENS).run(|input| {
        [
            parse::<NewRequests>(input),
            parse::<NewVersion>(input),
            parse::<NewJobs>(input),
            parse::<FinishBatch>(input),
            parse::<NewKey>(input),
        ]
    });
}

#[test]
fn cursors() {
    let list = test_cursors();
    let genuine = ["00000000-0000-0000-0000-000000000001", "42", "-1"].map(|key| list.seal(key));
    let mut examples: Vec<&str> = genuine.iter().map(String::as_str).collect();
    examples.push("42");
    Fuzzer::new(&examples).run(|input| {
        let text = String::from_utf8_lossy(input);
        let id = list.page::<RequestId>(Some(&text), None).map_err(status);
        let number = list
            .page::<i64>(Some(&text), Some(input.len() as u32))
            .map_err(status);
        let is_genuine = genuine.iter().any(|cursor| *cursor == text);
        assert!(
            is_genuine || (id.is_err() && number.is_err()),
            "forged: {text}"
        );
        (id.map(drop), number.map(drop))
    });
}

#[test]
fn hosts() {
    let tokens = [":", "@", "[", "]", "::", "/", " ", "%", "..", "99999"];
    Fuzzer::new(&["a_b:7777", "[::1]:80", ""])
        .tokens(&tokens)
        .run(|input| {
            let mut request = Request::new(());
            let host = HeaderValue::from_bytes(input).ok()?;
            request.headers_mut().insert(HOST, host);
            Some(host::check(&request).map_err(status))
        });
}

const CONNECTIONS: &[&str] = &[
    "GET / HTTP/1.1\r\nhost: x\r\n\r\nGET / HTTP/1.1\r\n\r\n",
    "\r\nPOST / HTTP/1.1\r\ncontent-length: 5\r\n\r\na\nb\n\nGET",
    "P / HTTP/1.1\r\n\r\n5;a=b\r\na\nb\n\n\r\n0\r\nx: y\r\n\r\nGET / HTTP/1.1\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\n",
];
const CONNECTION_TOKENS: &[&str] = &[
    "\r\n",
    "\n",
    "\r",
    "\r\n\r\n",
    "0\r\n",
    "a\r\n",
    ";",
    "PRI * ",
    "x: y\r\n",
    "ffffffffffffffff",
];

/// Scans a connection in pieces of this size; `framing` says how the body after the n-th head is framed. Returns where a bare LF is.
fn bare_lf(connection: &[u8], piece: usize, framing: impl Fn(usize) -> Framing) -> Option<usize> {
    let mut scanner = LineScanner::new();
    let (mut at, mut heads) = (0, 0);
    while at < connection.len() {
        if scanner.is_at_head_end() {
            scanner.head_parsed(framing(heads));
            heads += 1;
        }
        let end = connection.len().min(at + piece);
        let scan = scanner.scan(&connection[at..end]);
        at += scan.passed;
        match scan.stop {
            Some(Stop::BareLf | Stop::BareLfInChunkSize) => return Some(at),
            Some(Stop::HeadEnd) => assert!(scan.passed > 0, "no progress"),
            None => assert_eq!(at, end),
        }
    }
    None
}

#[test]
fn lines_without_bodies() {
    Fuzzer::new(CONNECTIONS)
        .tokens(CONNECTION_TOKENS)
        .run(|input| {
            let is_bare = |at: &usize| input[*at] == b'\n' && (*at == 0 || input[at - 1] != b'\r');
            let expected = match input.starts_with(b"PRI * HTTP/2.0\r\n\r\n") {
                true => None,
                false => (0..input.len()).find(is_bare),
            };
            let piece = 1 + input.len() % 7;
            assert_eq!(bare_lf(input, piece, |_| Framing::Length(0)), expected);
            expected.is_some()
        });
}

#[test]
fn lines_with_bodies_in_pieces_of_any_size() {
    Fuzzer::new(CONNECTIONS)
        .tokens(CONNECTION_TOKENS)
        .run(|input| {
            let framing = |heads: usize| match (input.len() + heads) % 3 {
                0 => Framing::Chunked,
                1 => Framing::Length(5),
                _ => Framing::Length(0),
            };
            let whole = bare_lf(input, input.len().max(1), framing);
            for piece in [1, 2, 3, 7] {
                assert_eq!(
                    bare_lf(input, piece, framing),
                    whole,
                    "in pieces of {piece}"
                );
            }
            whole.map(|at| at % 16)
        });
}
