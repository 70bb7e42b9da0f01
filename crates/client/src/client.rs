//! The client itself: one connection pool, one key, and how a call is sent, tried again and answered. Knows no route.

use crate::error::{ClientError, Result, unreachable};
use leasehold_api::Problem;
use leasehold_core::retry::Backoff;
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url, header};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The waits between tries of a call that is safe to repeat.
const WAITS: Backoff = Backoff {
    base: Duration::from_millis(100),
    factor: 2.0,
    max: Duration::from_secs(2),
    jitter: 0.5,
};
/// The longest wait a server is granted.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(10);
/// More of an answer that is no problem is not shown.
const SHOWN_MAX_CHARS: usize = 200;

/// A client of one Leasehold server. Clones share their connections.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    http: reqwest::Client,
    base: Url,
    key: String,
    options: ClientOptions,
}

/// How a client behaves.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long a call may take; the wait of a claim comes on top.
    pub timeout: Duration,
    /// How often a call that is safe to repeat is sent at most.
    pub tries: u32,
    /// Certificates in PEM to trust instead of the system's; for a server with a certificate of its own authority.
    pub ca_pem: Option<Vec<u8>>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            timeout: Duration::from_secs(35),
            tries: 4,
            ca_pem: None,
        }
    }
}

impl fmt::Debug for Client {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base = self.0.base.as_str();
        f.debug_struct("Client")
            .field("base", &base)
            .finish_non_exhaustive()
    }
}

/// A call to be.
pub(crate) struct Call<'a> {
    client: &'a Client,
    method: Method,
    url: Url,
    body: Option<Vec<u8>>,
    timeout: Duration,
    headers: Vec<(&'static str, String)>,
    /// Whether sending it twice is the same as once.
    safe: bool,
}

impl Client {
    /// A client of the server at this address, with this key.
    ///
    /// # Errors
    /// If the address is no `http://` or `https://` one, or the key cannot be sent.
    pub fn new(base_url: &str, key: &str) -> Result<Self> {
        Self::with(base_url, key, ClientOptions::default())
    }

    /// The same with other options.
    ///
    /// # Errors
    /// As [`Client::new`]; also if a certificate cannot be read.
    pub fn with(base_url: &str, key: &str, options: ClientOptions) -> Result<Self> {
        let setup = |what: String| ClientError::Setup(what);
        let base = Url::parse(base_url)
            .map_err(|error| setup(format!("`{base_url}` is no address: {error}")))?;
        if !base.username().is_empty() || base.password().is_some() {
            // Not shown: it holds a password.
            let wrong =
                "an address holds no user and no password: the key is what opens the server";
            return Err(setup(wrong.to_owned()));
        }
        if !matches!(base.scheme(), "http" | "https") || !base.has_host() {
            return Err(setup(format!("`{base_url}` is no http or https address")));
        }
        if header::HeaderValue::from_str(&format!("Bearer {key}")).is_err() {
            return Err(setup("the key has characters that no key has".to_owned()));
        }
        // The HTTP client takes the process's TLS provider. This fails only if there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .connect_timeout(options.connect_timeout)
            // A key is for the server it was given for.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("leasehold-client/", env!("CARGO_PKG_VERSION")));
        if is_loopback(&base) {
            // What stays on this machine goes through nobody's hands, and neither does its key.
            builder = builder.no_proxy();
        }
        if let Some(pem) = &options.ca_pem {
            let certificates = reqwest::Certificate::from_pem_bundle(pem)
                .map_err(|error| setup(format!("the certificates cannot be read: {error}")))?;
            if certificates.is_empty() {
                return Err(setup("the file holds no certificate in PEM".to_owned()));
            }
            builder = builder.tls_certs_only(certificates);
        }
        let http = builder.build().map_err(|error| setup(error.to_string()))?;
        Ok(Self(Arc::new(Inner {
            http,
            base,
            key: key.to_owned(),
            options,
        })))
    }

    /// Whether the server is on this very machine, whatever its port.
    pub fn is_local(&self) -> bool {
        is_loopback(&self.0.base)
    }

    /// A call of a route, each part of whose path is escaped.
    pub(crate) fn call(&self, method: Method, path: &[&str]) -> Call<'_> {
        let mut url = self.0.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        Call {
            client: self,
            safe: matches!(method, Method::GET | Method::PUT),
            method,
            url,
            body: None,
            timeout: self.0.options.timeout,
            headers: Vec::new(),
        }
    }

    pub(crate) fn get(&self, path: &[&str]) -> Call<'_> {
        self.call(Method::GET, path)
    }

    pub(crate) fn post(&self, path: &[&str]) -> Call<'_> {
        self.call(Method::POST, path)
    }
}

impl Call<'_> {
    pub(crate) fn query(mut self, name: &str, value: Option<impl ToString>) -> Self {
        if let Some(value) = value {
            let value = value.to_string();
            self.url.query_pairs_mut().append_pair(name, &value);
        }
        self
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn body(mut self, body: &impl Serialize) -> Result<Self> {
        let text = serde_json::to_vec(body);
        self.body = Some(text.map_err(|error| ClientError::Setup(error.to_string()))?);
        Ok(self)
    }

    /// On top of the usual timeout.
    pub(crate) fn waiting(mut self, wait: Duration) -> Self {
        self.timeout += wait;
        self
    }

    /// Sending it twice is the same as once.
    pub(crate) fn repeatable(mut self, safe: bool) -> Self {
        self.safe = safe;
        self
    }

    /// Sends it and reads the answer.
    pub(crate) async fn json<T: DeserializeOwned>(self) -> Result<T> {
        let text = self.text().await?;
        serde_json::from_slice(&text).map_err(|error| {
            ClientError::Unexpected(format!("the answer is not as expected: {error}"))
        })
    }

    /// Sends it; what is answered does not matter.
    pub(crate) async fn done(self) -> Result<()> {
        self.text().await.map(drop)
    }

    /// Sends it, again if that is safe and may help, and returns the bytes of a success.
    pub(crate) async fn text(self) -> Result<bytes::Bytes> {
        let mut tries = 0;
        loop {
            tries += 1;
            let error = match self.once().await {
                Ok(bytes) => return Ok(bytes),
                Err(error) => error,
            };
            if !self.safe || !error.is_retryable() || tries >= self.client.0.options.tries {
                return Err(error);
            }
            let wait = WAITS.delay(tries, fastrand::f64());
            let asked = error.retry_after().unwrap_or_default().min(RETRY_AFTER_MAX);
            tokio::time::sleep(wait.max(asked)).await;
        }
    }

    async fn once(&self) -> Result<bytes::Bytes> {
        let response = self.request().timeout(self.timeout).send().await;
        let response = accepted(response.map_err(unreachable)?).await?;
        response.bytes().await.map_err(unreachable)
    }

    /// Sends it once, without an end: for a stream.
    pub(crate) async fn open(&self) -> Result<Response> {
        let send = self.request().send();
        let sent = tokio::time::timeout(self.timeout, send).await;
        let sent = sent.map_err(|_| ClientError::Unreachable("no answer in time".to_owned()))?;
        accepted(sent.map_err(unreachable)?).await
    }

    fn request(&self) -> RequestBuilder {
        let inner = &self.client.0;
        let mut request = inner
            .http
            .request(self.method.clone(), self.url.clone())
            .bearer_auth(&inner.key);
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        if let Some(body) = &self.body {
            request = request
                .header(header::CONTENT_TYPE, "application/json")
                .body(body.clone());
        }
        request
    }
}

fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else {
        return false;
    };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse::<std::net::IpAddr>();
    bare == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// The answer, if it is a success; else what it says.
async fn accepted(response: Response) -> Result<Response> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let body = response.bytes().await.map_err(unreachable)?;
    Err(refused(status, &body))
}

fn refused(status: StatusCode, body: &[u8]) -> ClientError {
    if let Ok(problem) = serde_json::from_slice::<Problem>(body) {
        return ClientError::Problem(Box::new(problem));
    }
    let text: String = String::from_utf8_lossy(body)
        .chars()
        .take(SHOWN_MAX_CHARS)
        .collect();
    let text = format!("{status}: {text}");
    // What stands between here and the server says so when that is away.
    match status.as_u16() {
        502..=504 => ClientError::Unreachable(text),
        _ => ClientError::Unexpected(text),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn only_this_machine_is_local_however_the_address_is_written() {
        for (server, local) in [
            ("http://127.0.0.1:7777", true),
            ("http://localhost:1/x", true),
            ("https://[::1]:1", true),
            ("http://2130706433:1", true),
            ("http://10.0.0.1:7777", false),
            ("http://localhost.example.com", false),
            ("http://127.0.0.1.example.com", false),
            ("http:192.0.2.2:1/://localhost", false),
            ("http://[::ffff:127.0.0.1]:1", false),
        ] {
            let client = Client::new(server, "").unwrap();
            assert_eq!(client.is_local(), local, "{server}");
        }
    }

    #[test]
    fn an_address_with_a_password_is_refused_without_being_shown() {
        let error = Client::new("http://me:hunter2@127.0.0.1", "").unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }

    #[test]
    fn a_file_without_certificates_is_refused() {
        let options = ClientOptions {
            ca_pem: Some(b"nothing".to_vec()),
            ..ClientOptions::default()
        };
        assert!(Client::with("https://127.0.0.1", "", options).is_err());
    }
}
