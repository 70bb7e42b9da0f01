//! A small HTTP server on 127.0.0.1 for `http` nodes to call: answers by path, counts calls. Knows no engine.

use serde_json::{Value, json};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Serves until it is dropped:
///
/// - `/echo…` comes to what was asked: method, path and body
/// - `/status/{n}` answers with that status
/// - `/flaky/{name}/{n}` fails with 503 so many times, then answers
/// - `/busy/{name}` answers 503 once and asks for another try in a second
/// - `/trace` comes to the trace that the call is part of
/// - `/hang` never answers
pub struct LocalServer {
    address: SocketAddr,
    calls: Arc<Calls>,
    serving: JoinHandle<()>,
}

/// Calls by path.
#[derive(Default)]
struct Calls(Mutex<HashMap<String, u32>>);

/// What was asked.
struct Asked {
    method: String,
    path: String,
    trace: Option<String>,
    body: Vec<u8>,
}

/// What is answered.
struct Answer {
    status: u16,
    headers: &'static str,
    body: Value,
}

impl LocalServer {
    /// Listens on a free port.
    ///
    /// # Panics
    /// If there is none.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("there is a free port");
        let calls = Arc::new(Calls::default());
        Self {
            address: listener.local_addr().expect("it has an address"),
            calls: calls.clone(),
            serving: tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let calls = calls.clone();
                    // Whoever goes away in the middle is no matter of ours.
                    tokio::spawn(async move { serve(stream, &calls).await });
                }
            }),
        }
    }

    /// The address of that path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// How often that path was called.
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

    /// Which call of that path this is, from 1.
    fn next(&self, path: &str) -> u32 {
        let mut calls = self.lock();
        let count = calls.entry(path.to_owned()).or_default();
        *count += 1;
        *count
    }
}

/// What `/echo…` answers.
pub(crate) fn echoed(method: &str, path: &str, body: Value) -> Value {
    json!({"method": method, "path": path, "body": body})
}

async fn serve(mut stream: TcpStream, calls: &Calls) -> io::Result<()> {
    let asked = read(&mut stream).await?;
    let call = calls.next(&asked.path);
    if asked.path == "/hang" {
        // Until the caller goes away.
        let mut rest = [0; 1];
        return stream.read(&mut rest).await.map(|_| ());
    }
    let answer = answer(&asked, call);
    let body = answer.body.to_string();
    let head = format!(
        "HTTP/1.1 {} As-Told\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n{}\r\n",
        answer.status,
        body.len(),
        answer.headers,
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

fn answer(asked: &Asked, call: u32) -> Answer {
    let with = |status, body| Answer {
        status,
        headers: "",
        body,
    };
    let number = |text: &str| text.parse().unwrap_or(0);
    let parts: Vec<&str> = asked.path.split('/').skip(1).collect();
    match parts[..] {
        ["status", status] => with(
            u16::try_from(number(status)).unwrap_or(500),
            json!({"said": status}),
        ),
        ["flaky", _, times] if call <= number(times) => with(503, json!("not yet")),
        ["busy", _] if call == 1 => Answer {
            headers: "retry-after: 1\r\n",
            ..with(503, json!("busy"))
        },
        ["trace"] => with(200, json!(asked.trace)),
        ["flaky", ..] | ["busy", ..] => with(200, json!({"call": call})),
        _ => {
            let body = serde_json::from_slice(&asked.body).unwrap_or(Value::Null);
            with(200, echoed(&asked.method, &asked.path, body))
        }
    }
}

async fn read(stream: &mut TcpStream) -> io::Result<Asked> {
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
            let is_it = name.eq_ignore_ascii_case(wanted);
            is_it.then(|| value.trim().to_owned())
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
    Ok(Asked {
        method: first.next().unwrap_or_default().to_owned(),
        path: first.next().unwrap_or_default().to_owned(),
        trace: header("traceparent"),
        body,
    })
}
