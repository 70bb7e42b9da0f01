//! In-process calls of the server's app, without a socket.

use super::{TestResponse, TestServer};
use axum::body::Body;
use axum::http::request::Builder;
use axum::http::{Method, Request, header};
use serde_json::Value;
use tower::ServiceExt;

impl TestServer {
    /// Calls the app; `key` may be empty and `body` null.
    pub async fn call(&self, method: Method, path: &str, key: &str, body: Value) -> TestResponse {
        self.call_with(method, path, key, &[], body).await
    }

    /// Calls the app with additional headers.
    pub async fn call_with(
        &self,
        method: Method,
        path: &str,
        key: &str,
        headers: &[(&str, &str)],
        body: Value,
    ) -> TestResponse {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = if body.is_null() {
            Body::empty()
        } else {
            request = request.header(header::CONTENT_TYPE, "application/json");
            Body::from(body.to_string())
        };
        self.send(request, key, body).await
    }

    /// Calls the app with a raw body, which need not be JSON.
    pub async fn call_raw(
        &self,
        method: Method,
        path: &str,
        key: &str,
        body: &str,
    ) -> TestResponse {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::CONTENT_TYPE, "application/json");
        self.send(request, key, Body::from(body.to_owned())).await
    }

    /// Sends a request with any body to the app.
    pub async fn send(&self, mut request: Builder, key: &str, body: Body) -> TestResponse {
        if !key.is_empty() {
            request = request.header(header::AUTHORIZATION, format!("Bearer {key}"));
        }
        let request = request.body(body).unwrap();
        TestResponse::read(self.app.clone().oneshot(request).await.unwrap()).await
    }

    /// Calls GET.
    pub async fn get(&self, path: &str, key: &str) -> TestResponse {
        self.call(Method::GET, path, key, Value::Null).await
    }

    /// Calls POST.
    pub async fn post(&self, path: &str, key: &str, body: Value) -> TestResponse {
        self.call(Method::POST, path, key, body).await
    }

    /// Returns every item of a list, read in pages of `limit`; `path` may have a query.
    pub async fn all_pages(&self, path: &str, key: &str, limit: u32) -> Vec<Value> {
        let separator = if path.contains('?') { '&' } else { '?' };
        let mut items = Vec::new();
        let mut next = String::new();
        loop {
            let page = format!("{path}{separator}limit={limit}{next}");
            let page = self.get(&page, key).await.expect(200);
            let rows = page["items"].as_array().unwrap();
            assert!(rows.len() <= limit as usize);
            items.extend(rows.iter().cloned());
            match page["next"].as_str() {
                Some(after) => next = format!("&after={after}"),
                None => return items,
            }
        }
    }
}
