//! A small client of server-sent events over a real socket: connects, reads event by event, and breaks off when told.

use leasehold_testbed::TestServer;
use reqwest::{Client, Response};
use serde_json::Value;
use std::time::Duration;

/// How long an event is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// One block of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sent {
    pub(crate) id: Option<String>,
    pub(crate) event: String,
    pub(crate) data: Value,
    pub(crate) comment: String,
}

/// Serves the app on a free port and answers its address.
pub(crate) async fn serve(ground: &TestServer) -> String {
    let address = TestServer::listen(ground.app.clone()).await;
    format!("http://{address}")
}

/// An open stream. It is broken off by dropping it.
pub(crate) struct Stream {
    response: Response,
    read: String,
}

/// Asks for a stream; whatever is answered.
pub(crate) async fn ask(url: &str, key: &str, last_id: Option<&str>) -> Response {
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
        let response = ask(url, key, last_id).await;
        assert_eq!(response.status(), 200);
        let kind = response.headers()["content-type"].to_str().unwrap();
        assert_eq!(kind, "text/event-stream");
        Self {
            response,
            read: String::new(),
        }
    }

    /// The next block; none when the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<Sent> {
        let block = tokio::time::timeout(PATIENCE, self.block()).await;
        block
            .expect("something is sent in time")
            .map(|block| parsed(&block))
    }

    /// The next change of a request.
    pub(crate) async fn change(&mut self) -> Sent {
        loop {
            let sent = self.next().await.expect("the stream goes on");
            if sent.event == "request" {
                return sent;
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

pub(crate) fn parsed(block: &str) -> Sent {
    let mut sent = Sent::default();
    for line in block.lines() {
        let (name, value) = line.split_once(':').unwrap();
        let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
        match name {
            "id" => sent.id = Some(value),
            "event" => sent.event = value,
            "data" => sent.data = serde_json::from_str(&value).unwrap(),
            "" => sent.comment = value,
            other => panic!("unknown field {other}"),
        }
    }
    sent
}
