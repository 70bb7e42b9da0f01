//! The client: one connection pool, one key, and how a call is sent and retried. Knows no route.

use crate::error::{ClientError, Result, unreachable};
#[cfg(unix)]
use crate::socket_path::SocketPath;
use leasehold_api::Problem;
use leasehold_core::retry::Backoff;
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url, header};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
#[cfg(unix)]
use std::fs::File;
#[cfg(unix)]
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The backoff between attempts of a repeatable call.
const BACKOFF: Backoff = Backoff {
    base: Duration::from_millis(100),
    factor: 2.0,
    max: Duration::from_secs(2),
    jitter: 0.5,
};
/// The longest `Retry-After` that the client waits for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(10);
/// Characters shown of a response that is not a problem document.
const EXCERPT_MAX_CHARS: usize = 200;
/// The base of URLs over a Unix socket, where the host has no meaning.
#[cfg(unix)]
const SOCKET_BASE_URL: &str = "http://localhost";

/// A client of one Leasehold server. Clones share one connection pool.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    http: reqwest::Client,
    base: Url,
    key: String,
    options: ClientOptions,
    /// Keeps the path of the socket valid.
    #[cfg(unix)]
    _socket: Option<SocketPath>,
}

/// The options of a client.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Timeout of connecting. Default: 5 s.
    pub connect_timeout: Duration,
    /// Timeout of a call, without the wait of a claim. Default: 35 s.
    pub timeout: Duration,
    /// Maximum number of attempts of a repeatable call. Default: 4.
    pub max_attempts: u32,
    /// PEM certificates to trust instead of the system's, for a server with a private certificate authority.
    pub ca_pem: Option<Vec<u8>>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            timeout: Duration::from_secs(35),
            max_attempts: 4,
            ca_pem: None,
        }
    }
}

impl fmt::Debug for Client {
    /// Omits the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base = self.0.base.as_str();
        f.debug_struct("Client")
            .field("base", &base)
            .finish_non_exhaustive()
    }
}

/// A call that has not been sent.
pub(crate) struct Call<'a> {
    client: &'a Client,
    method: Method,
    url: Url,
    body: Option<Vec<u8>>,
    timeout: Duration,
    headers: Vec<(&'static str, String)>,
    /// Whether the call is idempotent.
    repeatable: bool,
}

impl Client {
    /// Creates a client of the server at this address, with this key.
    ///
    /// # Errors
    /// Fails if the address is not an `http://` or `https://` URL, or the key is not a valid header value.
    pub fn new(base_url: &str, key: &str) -> Result<Self> {
        Self::with(base_url, key, ClientOptions::default())
    }

    /// Creates a client with other options.
    ///
    /// # Errors
    /// Fails as [`Client::new`], and if a certificate is invalid.
    pub fn with(base_url: &str, key: &str, options: ClientOptions) -> Result<Self> {
        let base = parse_base(base_url)?;
        let mut builder = builder(&options);
        if is_loopback(&base) {
            // A proxy must not see calls to this machine, nor their key.
            builder = builder.no_proxy();
        }
        if let Some(pem) = &options.ca_pem {
            let certificates = reqwest::Certificate::from_pem_bundle(pem)
                .map_err(|error| setup(format!("failed to parse the CA certificates: {error}")))?;
            if certificates.is_empty() {
                return Err(setup("the CA file contains no PEM certificate"));
            }
            builder = builder.tls_certs_only(certificates);
        }
        let inner = Inner {
            http: build(builder)?,
            base,
            key: checked_key(key)?,
            options,
            #[cfg(unix)]
            _socket: None,
        };
        Ok(Self(Arc::new(inner)))
    }

    /// Creates a client of the server that listens on this Unix socket. It connects to nothing else: TLS, proxies and `ca_pem` do not apply.
    ///
    /// # Errors
    /// Fails if the path is too long for a socket address, or the key is not a valid header value.
    #[cfg(unix)]
    pub fn over_socket(path: &Path, key: &str, options: ClientOptions) -> Result<Self> {
        let socket = SocketPath::new(path);
        let socket = socket.map_err(|error| setup(format!("cannot use the socket: {error}")))?;
        Self::over(socket, key, options)
    }

    /// Creates a client like [`Client::over_socket`] of the socket with this name in an open directory, also if its path later leads to another directory.
    /// None if the system has no paths through open directories (Linux has), or the name is too long.
    ///
    /// # Errors
    /// Fails if the key is not a valid header value.
    #[cfg(unix)]
    pub fn over_socket_within(
        directory: File,
        name: &str,
        key: &str,
        options: ClientOptions,
    ) -> Result<Option<Self>> {
        let socket = SocketPath::within(directory, Path::new(name));
        let client = socket.map(|socket| Self::over(socket, key, options));
        client.transpose()
    }

    #[cfg(unix)]
    fn over(socket: SocketPath, key: &str, options: ClientOptions) -> Result<Self> {
        let builder = builder(&options).unix_socket(socket.as_path()).no_proxy();
        let inner = Inner {
            http: build(builder)?,
            base: parse_base(SOCKET_BASE_URL)?,
            key: checked_key(key)?,
            options,
            _socket: Some(socket),
        };
        Ok(Self(Arc::new(inner)))
    }

    /// Creates a call. Escapes each part of the path.
    pub(crate) fn call(&self, method: Method, path: &[&str]) -> Call<'_> {
        let mut url = self.0.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        Call {
            client: self,
            repeatable: matches!(method, Method::GET | Method::PUT),
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

    /// Adds to the timeout.
    pub(crate) fn waiting(mut self, wait: Duration) -> Self {
        self.timeout += wait;
        self
    }

    /// Sets whether the call may be retried.
    pub(crate) fn repeatable(mut self, repeatable: bool) -> Self {
        self.repeatable = repeatable;
        self
    }

    /// Sends the call and deserializes the response.
    pub(crate) async fn json<T: DeserializeOwned>(self) -> Result<T> {
        let text = self.text().await?;
        serde_json::from_slice(&text).map_err(|error| {
            ClientError::Unexpected(format!("failed to parse the response body: {error}"))
        })
    }

    /// Sends the call and discards the response body.
    pub(crate) async fn done(self) -> Result<()> {
        self.text().await.map(drop)
    }

    /// Sends the call, retries it if it is repeatable and the error retryable, and returns the response body.
    pub(crate) async fn text(self) -> Result<bytes::Bytes> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let error = match self.once().await {
                Ok(bytes) => return Ok(bytes),
                Err(error) => error,
            };
            if !self.repeatable
                || !error.is_retryable()
                || attempts >= self.client.0.options.max_attempts
            {
                return Err(error);
            }
            let wait = BACKOFF.delay(attempts, fastrand::f64());
            let retry_after = error.retry_after().unwrap_or_default().min(RETRY_AFTER_MAX);
            tokio::time::sleep(wait.max(retry_after)).await;
        }
    }

    async fn once(&self) -> Result<bytes::Bytes> {
        let response = self.request().timeout(self.timeout).send().await;
        let response = check_status(response.map_err(unreachable)?).await?;
        response.bytes().await.map_err(unreachable)
    }

    /// Sends the call once and returns the open response, for a stream.
    pub(crate) async fn open(&self) -> Result<Response> {
        let send = self.request().send();
        let sent = tokio::time::timeout(self.timeout, send).await;
        let sent = sent
            .map_err(|_| ClientError::Unreachable("no response within the timeout".to_owned()))?;
        check_status(sent.map_err(unreachable)?).await
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

fn setup(text: impl Into<String>) -> ClientError {
    ClientError::Setup(text.into())
}

fn parse_base(base_url: &str) -> Result<Url> {
    let base = Url::parse(base_url)
        .map_err(|error| setup(format!("invalid server address `{base_url}`: {error}")))?;
    if !base.username().is_empty() || base.password().is_some() {
        // The message omits the address, which contains a password.
        return Err(setup(
            "invalid server address: it must not contain a user name or password; pass an API key instead",
        ));
    }
    if !matches!(base.scheme(), "http" | "https") || !base.has_host() {
        return Err(setup(format!(
            "invalid server address `{base_url}`: must start with http:// or https://"
        )));
    }
    Ok(base)
}

fn checked_key(key: &str) -> Result<String> {
    match header::HeaderValue::from_str(&format!("Bearer {key}")) {
        Ok(_) => Ok(key.to_owned()),
        Err(_) => Err(setup(
            "invalid API key: it contains characters that a key cannot have",
        )),
    }
}

fn builder(options: &ClientOptions) -> reqwest::ClientBuilder {
    // The HTTP client uses the process's TLS provider. This fails only if one is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .connect_timeout(options.connect_timeout)
        // Do not send the key to another server.
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("leasehold-client/", env!("CARGO_PKG_VERSION")))
}

fn build(builder: reqwest::ClientBuilder) -> Result<reqwest::Client> {
    builder.build().map_err(|error| setup(error.to_string()))
}

fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else {
        return false;
    };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse::<std::net::IpAddr>();
    bare == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Returns a successful response, or its error.
async fn check_status(response: Response) -> Result<Response> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let body = response.bytes().await.map_err(unreachable)?;
    Err(error_of(status, &body))
}

fn error_of(status: StatusCode, body: &[u8]) -> ClientError {
    if let Ok(problem) = serde_json::from_slice::<Problem>(body) {
        return ClientError::Problem(Box::new(problem));
    }
    let text: String = String::from_utf8_lossy(body)
        .chars()
        .take(EXCERPT_MAX_CHARS)
        .collect();
    let text = format!("{status}: {text}");
    // A proxy answers so while the server is down.
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
    fn loopback_is_recognized_in_every_form() {
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
            assert_eq!(is_loopback(&parse_base(server).unwrap()), local, "{server}");
        }
    }

    #[test]
    fn fuzzed_error_responses_become_errors() {
        let problem = Problem::new(leasehold_api::Code::Invalid, "too long");
        let problem = problem.at("/name").retry_after(3);
        let problem = serde_json::to_string(&problem).unwrap();
        let tokens = [
            "\"code\"",
            "{",
            "}",
            "\"",
            "\\u0000",
            "\u{1b}[31m",
            "[",
            "1e400",
        ];
        leasehold_testkit::Fuzzer::new(&[&problem, "<html>"])
            .tokens(&tokens)
            .run(|input| {
                let status = StatusCode::from_u16(400 + input.len() as u16 % 200).unwrap();
                match error_of(status, input) {
                    ClientError::Problem(problem) => {
                        let text = serde_json::to_string(&problem).unwrap();
                        assert_eq!(serde_json::from_str::<Problem>(&text).unwrap(), *problem);
                        0
                    }
                    ClientError::Unreachable(text) => text.len().min(3),
                    ClientError::Unexpected(text) => 10 + text.len().min(3),
                    ClientError::Setup(text) => panic!("{text}"),
                }
            });
    }

    #[test]
    fn error_for_address_with_password_omits_the_password() {
        let error = Client::new("http://me:hunter2@127.0.0.1", "").unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }

    #[test]
    fn file_without_certificates_is_rejected() {
        let options = ClientOptions {
            ca_pem: Some(b"nothing".to_vec()),
            ..ClientOptions::default()
        };
        assert!(Client::with("https://127.0.0.1", "", options).is_err());
    }
}
