//! A small client of server-sent events over a real socket.

use leasehold_testbed::TestServer;
use reqwest::{Client, Response};
use serde_json::Value;
use std::time::Duration;

/// Time limit for an event.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);

/// One block of an event stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ServerEvent {
    pub(crate) id: Option<String>,
    pub(crate) event: String,
    pub(crate) data: Value,
    pub(crate) comment: String,
}

/// Serves the app on a free port and returns its address.
pub(crate) async fn serve(server: &TestServer) -> String {
    let address = TestServer::listen(server.app.clone()).await;
    format!("http://{address}")
}

/// An open stream; dropping it closes the connection.
pub(crate) struct Stream {
    response: Response,
    read: String,
}

/// Requests a stream and returns the response.
pub(crate) async fn request_stream(url: &str, key: &str, last_id: Option<&str>) -> Response {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let request = Client::new()
        .get(url)
        .bearer_auth(key)
        .header("Accept", "text/event-stream");
    let request = match last_id {
        Some(id) => request.header("Last-Event-ID", id),
        None => request,
    };
    request.send().await.unwrap()
}

impl Stream {
    pub(crate) async fn open(url: &str, key: &str, last_id: Option<&str>) -> Self {
        let response = request_stream(url, key, last_id).await;
        assert_eq!(response.status(), 200);
        let kind = response.headers()["content-type"].to_str().unwrap();
        assert_eq!(kind, "text/event-stream");
        Self {
            response,
            read: String::new(),
        }
    }

    /// Reads the next block; `None` when the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<ServerEvent> {
        let block = tokio::time::timeout(TIMEOUT, self.block()).await;
        block
            .expect("an event arrives in time")
            .map(|block| parse_event(&block))
    }

    /// Reads the next change of a request.
    pub(crate) async fn change(&mut self) -> ServerEvent {
        loop {
            let event = self.next().await.expect("the stream continues");
            if event.event == "request" {
                return event;
            }
        }
    }

    async fn block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.read.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.read = rest;
                return Some(block);
            }
            let chunk = self.response.chunk().await.ok().flatten()?;
            self.read.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }
}

pub(crate) fn parse_event(block: &str) -> ServerEvent {
    let mut event = ServerEvent::default();
    for line in block.lines() {
        let (name, value) = line.split_once(':').unwrap();
        let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
        match name {
            "id" => event.id = Some(value),
            "event" => event.event = value,
            "data" => event.data = serde_json::from_str(&value).unwrap(),
            "" => event.comment = value,
            other => panic!("unknown field {other}"),
        }
    }
    event
}
