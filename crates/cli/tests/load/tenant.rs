//! A tenant of the server under load: its key and the calls it makes.

use leasehold_testkit::{HttpConnection, HttpResponse};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::timeout;

/// The longest wait for a response: the server's deadline of a call, and time to send a large body on a busy machine.
const RESPONSE_MAX: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub(crate) struct Tenant {
    pub(crate) address: SocketAddr,
    pub(crate) key: String,
    pub(crate) workspace: String,
}

impl Tenant {
    /// Calls a path below the tenant's workspace.
    pub(crate) async fn call(
        &self,
        method: &str,
        tail: &str,
        body: Option<&[u8]>,
    ) -> std::io::Result<HttpResponse> {
        let path = format!("/v1/workspaces/{}{tail}", self.workspace);
        self.call_path(method, &path, body).await
    }

    pub(crate) async fn call_path(
        &self,
        method: &str,
        path: &str,
        body: Option<&[u8]>,
    ) -> std::io::Result<HttpResponse> {
        let call = async {
            let mut connection = HttpConnection::open(self.address).await?;
            connection.call(method, path, &self.key, body).await
        };
        let answer = timeout(RESPONSE_MAX, call).await;
        answer.unwrap_or_else(|_| panic!("{method} {path}: no answer in {RESPONSE_MAX:?}"))
    }

    /// Publishes a version that the server must accept.
    pub(crate) async fn must_publish(&self, definition: &str, version: &Value) {
        let answer = self.publish(definition, version).await.unwrap();
        assert_eq!(answer.status, 201, "{}", answer.text());
    }

    /// Enqueues a request that the server must accept, and returns its id.
    pub(crate) async fn must_enqueue(&self, definition: &str, params: &str) -> String {
        let answer = self.enqueue(definition, params).await.unwrap();
        assert_eq!(answer.status, 201, "{}", answer.text());
        text(&document(&answer)["id"])
    }

    /// Returns a request.
    pub(crate) async fn request(&self, id: &str) -> Value {
        let answer = self.call("GET", &format!("/requests/{id}"), None).await;
        let answer = answer.unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
        document(&answer)
    }

    /// The name of a queue that no other workspace owns.
    pub(crate) fn queue(&self) -> String {
        format!("q-{}", self.workspace)
    }

    /// Creates a definition and returns its id.
    pub(crate) async fn define(&self, name: &str) -> String {
        let body = json!({ "name": name }).to_string();
        let answer = self.call("POST", "/definitions", Some(body.as_bytes()));
        let answer = answer.await.unwrap();
        assert_eq!(answer.status, 201, "{}", answer.text());
        text(&document(&answer)["id"])
    }

    /// Publishes a version. The server may reject it.
    pub(crate) async fn publish(
        &self,
        definition: &str,
        version: &Value,
    ) -> std::io::Result<HttpResponse> {
        let tail = format!("/definitions/{definition}/versions");
        let body = version.to_string();
        self.call("POST", &tail, Some(body.as_bytes())).await
    }

    /// Enqueues a request with these params, as JSON text.
    pub(crate) async fn enqueue(
        &self,
        definition: &str,
        params: &str,
    ) -> std::io::Result<HttpResponse> {
        let body = format!(r#"{{"definition": "{definition}", "params": {params}}}"#);
        self.call("POST", "/requests", Some(body.as_bytes())).await
    }
}

pub(crate) fn document(answer: &HttpResponse) -> Value {
    serde_json::from_slice(&answer.body).unwrap()
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}
