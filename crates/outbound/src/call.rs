//! Makes one HTTP call: connects only to allowed addresses, follows redirects itself, limits time and size.

use crate::guard::{AddressGuard, BlockedTarget, DnsLookup, GuardedResolver};
use crate::response;
use crate::target_rule::TargetRule;
use leasehold_core::JsonText;
use leasehold_core::graph::HttpCall;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Client, Method, Response, StatusCode, Url, redirect};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// Maximum number of redirects.
const MAX_REDIRECTS: usize = 5;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The options of an [`Outbound`].
#[derive(Clone, Debug, Default)]
pub struct OutboundOptions {
    /// Rules for non-public targets that may be called.
    pub allow: Vec<TargetRule>,
    /// Rules for targets that must not be called. They override `allow`.
    pub deny: Vec<TargetRule>,
}

/// An HTTP client. Clones share their connections.
#[derive(Clone)]
pub struct Outbound {
    client: Client,
    guard: Arc<AddressGuard>,
}

impl fmt::Debug for Outbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbound")
            .field("allow", &self.guard.allowed())
            .field("deny", &self.guard.denied())
            .finish_non_exhaustive()
    }
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct CallError {
    /// The error text.
    pub message: String,
    /// Whether a retry may succeed.
    pub is_retryable: bool,
    /// The delay before the retry, if the server sent one.
    pub retry_after: Option<Duration>,
}

impl CallError {
    pub(crate) fn permanent(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            is_retryable: false,
            retry_after: None,
        }
    }

    fn retryable(message: impl Into<String>) -> Self {
        Self {
            is_retryable: true,
            ..Self::permanent(message)
        }
    }

    /// Converts a transport error, with the text of its innermost cause.
    pub(crate) fn transport(error: &reqwest::Error) -> Self {
        let mut cause: &dyn std::error::Error = error;
        loop {
            if let Some(blocked) = cause.downcast_ref::<BlockedTarget>() {
                return blocked.clone().into();
            }
            match cause.source() {
                Some(source) => cause = source,
                None => break,
            }
        }
        let what = if error.is_connect() {
            "failed to connect"
        } else {
            "connection lost"
        };
        Self::retryable(format!("{what}: {cause}"))
    }
}

impl From<BlockedTarget> for CallError {
    fn from(blocked: BlockedTarget) -> Self {
        Self::permanent(blocked.to_string())
    }
}

/// The request to send next; each redirect creates another.
struct OutboundRequest {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Option<JsonText>,
}

impl Outbound {
    /// Creates a client.
    ///
    /// # Errors
    /// Fails if the system's root certificates cannot be read.
    pub fn new(options: OutboundOptions) -> Result<Self, CallError> {
        Self::with(AddressGuard::new(
            options.allow,
            options.deny,
            DnsLookup::System,
        ))
    }

    pub(crate) fn with(guard: AddressGuard) -> Result<Self, CallError> {
        let guard = Arc::new(guard);
        // The HTTP client uses the process's TLS provider. This fails only if one is installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .user_agent(concat!("leasehold/", env!("CARGO_PKG_VERSION")))
            .dns_resolver(Arc::new(GuardedResolver(Arc::clone(&guard))))
            // A proxy would connect without the address check.
            .no_proxy()
            .redirect(redirect::Policy::none())
            .referer(false)
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .build()
            .map_err(|error| CallError::permanent(error.to_string()))?;
        Ok(Self { client, guard })
    }

    /// Makes a call and returns its output, `{"status": …, "headers": {…}, "body": …}`.
    ///
    /// # Errors
    /// Fails on a timeout, a transport error, or a response that is not a success.
    pub async fn call(&self, call: &HttpCall, timeout: Duration) -> Result<JsonText, CallError> {
        self.call_traced(call, timeout, None).await
    }

    /// Makes a call as [`Outbound::call`] does, and sends this `traceparent`, unless the call sets the header itself.
    ///
    /// # Errors
    /// Fails on a timeout, a transport error, or a response that is not a success.
    pub async fn call_traced(
        &self,
        call: &HttpCall,
        timeout: Duration,
        trace: Option<&str>,
    ) -> Result<JsonText, CallError> {
        let result = tokio::time::timeout(timeout, self.make(call, trace)).await;
        result.unwrap_or_else(|_| {
            let within = timeout.as_secs_f64();
            Err(CallError::retryable(format!(
                "no response within {within} s"
            )))
        })
    }

    async fn make(&self, call: &HttpCall, trace: Option<&str>) -> Result<JsonText, CallError> {
        let mut request = initial_request(call, trace)?;
        for _ in 0..=MAX_REDIRECTS {
            self.guard.check(&request.url)?;
            let response = self.send(&request).await?;
            match redirect_request(request, &response)? {
                None => return response::read(response).await,
                Some(redirected) => request = redirected,
            }
        }
        Err(CallError::permanent(format!(
            "more than {MAX_REDIRECTS} redirects"
        )))
    }

    async fn send(&self, request: &OutboundRequest) -> Result<Response, CallError> {
        let mut builder = self
            .client
            .request(request.method.clone(), request.url.clone())
            .headers(request.headers.clone());
        if let Some(body) = &request.body {
            builder = builder.body(body.as_str().to_owned());
        }
        builder
            .send()
            .await
            .map_err(|error| CallError::transport(&error))
    }
}

fn initial_request(call: &HttpCall, trace: Option<&str>) -> Result<OutboundRequest, CallError> {
    let bad = |what: &str, error: &dyn fmt::Display| {
        CallError::permanent(format!("invalid {what}: {error}"))
    };
    let url = Url::parse(&call.url).map_err(|error| bad("url", &error))?;
    let method =
        Method::from_bytes(call.method.as_bytes()).map_err(|error| bad("method", &error))?;
    let mut headers = HeaderMap::new();
    if call.body.is_some() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    if !method.is_safe() {
        let key = HeaderValue::from_str(&call.idempotency_key);
        headers.insert(
            IDEMPOTENCY_KEY,
            key.map_err(|error| bad("idempotency key", &error))?,
        );
    }
    // A text that is not a valid header value is not a trace.
    if let Some(trace) = trace.and_then(|trace| HeaderValue::from_str(trace).ok()) {
        headers.insert(TRACEPARENT, trace);
    }
    for (name, value) in &call.headers {
        let name =
            HeaderName::from_bytes(name.as_bytes()).map_err(|error| bad("headers", &error))?;
        let value = HeaderValue::from_str(value).map_err(|error| bad("headers", &error))?;
        headers.insert(name, value);
    }
    Ok(OutboundRequest {
        method,
        url,
        headers,
        body: call.body.clone(),
    })
}

/// Returns the next request if the response is a redirect.
fn redirect_request(
    request: OutboundRequest,
    response: &Response,
) -> Result<Option<OutboundRequest>, CallError> {
    let status = response.status();
    let keeps_method = match status {
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => request.method != Method::POST,
        StatusCode::SEE_OTHER => request.method == Method::HEAD,
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => true,
        _ => return Ok(None),
    };
    let invalid =
        || CallError::permanent(format!("redirect {status} has no valid Location header"));
    let location = response.headers().get(LOCATION).ok_or_else(invalid)?;
    let location = location.to_str().map_err(|_| invalid())?;
    let mut url = request.url.join(location).map_err(|_| invalid())?;
    if request.url.scheme() == "https" && url.scheme() == "http" {
        return Err(CallError::permanent(
            "redirect from https to http is not allowed",
        ));
    }
    // Drops credentials in the redirect's URL, which are not the author's.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    let mut headers = request.headers;
    if url.origin() != request.url.origin() {
        // The author's headers may contain secrets for the first host only.
        let content_type = headers.remove(CONTENT_TYPE);
        headers.clear();
        headers.extend(content_type.map(|kind| (CONTENT_TYPE, kind)));
    }
    let (method, body) = if keeps_method {
        (request.method, request.body)
    } else {
        headers.remove(CONTENT_TYPE);
        headers.remove(IDEMPOTENCY_KEY);
        (Method::GET, None)
    };
    Ok(Some(OutboundRequest {
        method,
        url,
        headers,
        body,
    }))
}

#[cfg(test)]
mod tests;
