//! A small HTTP server on 127.0.0.1 for `http` nodes: responds by path and counts calls. Knows no engine.

use serde_json::{Value, json};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Serves these paths until it is dropped:
///
/// - `/echo…` returns method, path and body of the request
/// - `/status/{n}` returns this status
/// - `/flaky/{name}/{n}` returns 503 `n` times, then 200
/// - `/busy/{name}` returns 503 once, with `Retry-After: 1`
/// - `/trace` returns the request's trace context
/// - `/hang` never responds
pub struct LocalServer {
    address: SocketAddr,
    calls: Arc<Calls>,
    serving: JoinHandle<()>,
}

/// Calls by path.
#[derive(Default)]
struct Calls(Mutex<HashMap<String, u32>>);

struct Request {
    method: String,
    path: String,
    trace: Option<String>,
    body: Vec<u8>,
}

struct Response {
    status: u16,
    headers: &'static str,
    body: Value,
}

impl LocalServer {
    /// Starts on a free port.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("no free port");
        let calls = Arc::new(Calls::default());
        Self {
            address: listener.local_addr().expect("the listener has an address"),
            calls: calls.clone(),
            serving: tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let calls = calls.clone();
                    // Ignores clients that disconnect early.
                    tokio::spawn(async move { serve(stream, &calls).await });
                }
            }),
        }
    }

    /// The URL of this path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// How often this path was called.
    pub fn calls(&self, path: &str) -> u32 {
        self.calls.lock().get(path).copied().unwrap_or(0)
    }
}

impl Drop for LocalServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Calls {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call of this path and returns its number, from 1.
    fn next(&self, path: &str) -> u32 {
        let mut calls = self.lock();
        let count = calls.entry(path.to_owned()).or_default();
        *count += 1;
        *count
    }
}

/// The response body of `/echo…`.
pub(crate) fn echo_body(method: &str, path: &str, body: Value) -> Value {
    json!({"method": method, "path": path, "body": body})
}

async fn serve(mut stream: TcpStream, calls: &Calls) -> io::Result<()> {
    let request = read(&mut stream).await?;
    let call = calls.next(&request.path);
    if request.path == "/hang" {
        // Until the client disconnects.
        let mut rest = [0; 1];
        return stream.read(&mut rest).await.map(|_| ());
    }
    let response = respond(&request, call);
    let body = response.body.to_string();
    let head = format!(
        "HTTP/1.1 {} Test\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n{}\r\n",
        response.status,
        body.len(),
        response.headers,
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

fn respond(request: &Request, call: u32) -> Response {
    let with = |status, body| Response {
        status,
        headers: "",
        body,
    };
    let number = |text: &str| text.parse().unwrap_or(0);
    let parts: Vec<&str> = request.path.split('/').skip(1).collect();
    match parts[..] {
        ["status", status] => with(
            u16::try_from(number(status)).unwrap_or(500),
            json!({"status": status}),
        ),
        ["flaky", _, times] if call <= number(times) => with(503, json!("not yet")),
        ["busy", _] if call == 1 => Response {
            headers: "retry-after: 1\r\n",
            ..with(503, json!("busy"))
        },
        ["trace"] => with(200, json!(request.trace)),
        ["flaky", ..] | ["busy", ..] => with(200, json!({"call": call})),
        _ => {
            let body = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
            with(200, echo_body(&request.method, &request.path, body))
        }
    }
}

async fn read(stream: &mut TcpStream) -> io::Result<Request> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let header = |wanted: &str| {
        head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            let found = name.eq_ignore_ascii_case(wanted);
            found.then(|| value.trim().to_owned())
        })
    };
    let length = header("content-length").and_then(|length| length.parse().ok());
    let mut body = bytes.split_off(end);
    while body.len() < length.unwrap_or(0) {
        if stream.read_buf(&mut body).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    let mut first = head.split(' ');
    Ok(Request {
        method: first.next().unwrap_or_default().to_owned(),
        path: first.next().unwrap_or_default().to_owned(),
        trace: header("traceparent"),
        body,
    })
}
