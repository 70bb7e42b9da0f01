//! A gRPC proxy that forwards every call to the server and swallows the answers to calls that contain a text. Other calls of the same HTTP/2 connection
//! are answered.

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http2 as client;
use hyper::server::conn::http2 as server;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

type Sender = client::SendRequest<Full<Bytes>>;

#[derive(Default)]
struct Swallowing {
    text: Mutex<Option<String>>,
    swallowed: AtomicUsize,
}

pub(crate) struct SwallowingProxy {
    address: SocketAddr,
    state: Arc<Swallowing>,
    task: AbortHandle,
}

impl SwallowingProxy {
    /// Starts a proxy to this address, such as `127.0.0.1:7233`.
    pub(crate) async fn to(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Swallowing::default());
        let accepting = accept(listener, target.to_owned(), state.clone());
        let task = tokio::spawn(accepting).abort_handle();
        Self {
            address,
            state,
            task,
        }
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Swallows the answers to all calls whose message contains this text, from now on.
    pub(crate) fn swallow(&self, text: String) {
        *self.state.text.lock().unwrap() = Some(text);
    }

    /// Returns how many answers of the server were swallowed.
    pub(crate) fn swallowed(&self) -> usize {
        self.state.swallowed.load(Ordering::Relaxed)
    }
}

impl Drop for SwallowingProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, target: String, state: Arc<Swallowing>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let upstream = TcpStream::connect(&target).await.unwrap();
        connections.spawn(serve(stream, upstream, state.clone()));
    }
}

async fn serve(stream: TcpStream, upstream: TcpStream, state: Arc<Swallowing>) {
    let connected = client::handshake(TokioExecutor::new(), TokioIo::new(upstream)).await;
    let (sender, connection) = connected.unwrap();
    let service = service_fn(move |request| forward(sender.clone(), request, state.clone()));
    let serving =
        server::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service);
    // Ends when either side disconnects.
    let _ = tokio::join!(connection, serving);
}

async fn forward(
    mut sender: Sender,
    request: Request<Incoming>,
    state: Arc<Swallowing>,
) -> hyper::Result<Response<Incoming>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let is_swallowed = {
        let text = state.text.lock().unwrap();
        text.as_deref()
            .is_some_and(|text| contains(&body, text.as_bytes()))
    };
    let answer = sender.send_request(Request::from_parts(head, Full::new(body)));
    let answer = answer.await?;
    if is_swallowed {
        state.swallowed.fetch_add(1, Ordering::Relaxed);
        return std::future::pending().await;
    }
    Ok(answer)
}

fn contains(body: &[u8], text: &[u8]) -> bool {
    body.windows(text.len()).any(|window| window == text)
}
