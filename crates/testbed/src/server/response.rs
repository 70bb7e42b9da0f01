//! The response of a call, and assertions on it.

use axum::body::Body;
use axum::http::{HeaderMap, Response, header};
use http_body_util::BodyExt;
use serde_json::Value;

/// A fully read response.
#[derive(Debug)]
pub struct TestResponse {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body as JSON; null if it is empty or not JSON.
    pub json: Value,
    /// The body's text.
    pub text: String,
}

impl TestResponse {
    /// Returns the body if the status is this.
    ///
    /// # Panics
    /// When the status differs.
    #[track_caller]
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        self.json
    }

    /// Asserts that the response is a problem with this code and this `path` (empty for none), and returns it.
    ///
    /// # Panics
    /// When it is not.
    #[track_caller]
    pub fn expect_problem(self, code: &str, path: &str) -> Value {
        assert_eq!(self.json["code"], code, "{} {}", self.status, self.text);
        assert_eq!(self.json["status"], self.status, "{}", self.text);
        assert_eq!(self.json["type"], format!("/errors/{code}"));
        assert_eq!(self.header("content-type"), "application/problem+json");
        let at = self.json["path"].as_str().unwrap_or_default();
        assert_eq!(at, path, "{}", self.text);
        self.json
    }

    /// Returns a header's value; empty if it is missing.
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }

    /// Reads a response; of an event stream only the first block, since the stream does not end.
    pub(super) async fn read(response: Response<Body>) -> Self {
        let (parts, mut body) = response.into_parts();
        let kind = parts.headers.get(header::CONTENT_TYPE);
        let bytes = if kind.is_some_and(|kind| kind == "text/event-stream") {
            let first = body.frame().await.unwrap().unwrap();
            first.into_data().unwrap()
        } else {
            body.collect().await.unwrap().to_bytes()
        };
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Self {
            status: parts.status.as_u16(),
            headers: parts.headers,
            json: serde_json::from_str(&text).unwrap_or_default(),
            text,
        }
    }
}
