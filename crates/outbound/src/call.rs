//! Makes one call: dials only what may be dialled, follows redirects by hand, bounds time and size.

use crate::allow::Allow;
use crate::answer;
use crate::guard::{Guard, Lookup, Refused, Resolver};
use leasehold_core::JsonText;
use leasehold_core::graph::HttpCall;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Client, Method, Response, StatusCode, Url, redirect};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// Redirects that are followed.
const HOPS: usize = 5;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// How calls are made.
#[derive(Clone, Debug, Default)]
pub struct OutboundOptions {
    /// What may be called although it is not public.
    pub allow: Vec<Allow>,
}

/// Makes calls. A copy shares its connections.
#[derive(Clone)]
pub struct Outbound {
    client: Client,
    guard: Arc<Guard>,
}

impl fmt::Debug for Outbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbound")
            .field("allow", &self.guard.allowed())
            .finish_non_exhaustive()
    }
}

/// Why a call brought nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct CallError {
    /// What went wrong.
    pub message: String,
    /// Whether another try may help.
    pub again: bool,
    /// How long to wait before it, if whoever was called said so.
    pub after: Option<Duration>,
}

impl CallError {
    pub(crate) fn permanent(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            again: false,
            after: None,
        }
    }

    fn passing(message: impl Into<String>) -> Self {
        Self {
            again: true,
            ..Self::permanent(message)
        }
    }

    /// What the connection says went wrong: the innermost cause is what helps.
    pub(crate) fn transport(error: &reqwest::Error) -> Self {
        let mut cause: &dyn std::error::Error = error;
        loop {
            if let Some(refused) = cause.downcast_ref::<Refused>() {
                return refused.clone().into();
            }
            match cause.source() {
                Some(source) => cause = source,
                None => break,
            }
        }
        let what = if error.is_connect() {
            "cannot be reached"
        } else {
            "broke off"
        };
        Self::passing(format!("{what}: {cause}"))
    }
}

impl From<Refused> for CallError {
    fn from(refused: Refused) -> Self {
        Self::permanent(refused.to_string())
    }
}

/// A request on its way through redirects.
struct Hop {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Option<JsonText>,
}

impl Outbound {
    /// Makes calls in this way.
    ///
    /// # Errors
    /// If the system's certificates cannot be used.
    pub fn new(options: OutboundOptions) -> Result<Self, CallError> {
        Self::with(Guard::new(options.allow, Lookup::System))
    }

    pub(crate) fn with(guard: Guard) -> Result<Self, CallError> {
        let guard = Arc::new(guard);
        // The HTTP client takes the process's TLS provider. This fails only if there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .user_agent(concat!("leasehold/", env!("CARGO_PKG_VERSION")))
            .dns_resolver(Arc::new(Resolver(Arc::clone(&guard))))
            // A proxy would dial for us, where nobody checks.
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
    /// If there was no answer in time, or none that is a success.
    pub async fn call(&self, call: &HttpCall, timeout: Duration) -> Result<JsonText, CallError> {
        self.call_traced(call, timeout, None).await
    }

    /// As [`Outbound::call`], as part of this trace, a `traceparent`: whoever is called is told of it, unless the call has such a header itself.
    ///
    /// # Errors
    /// If there was no answer in time, or none that is a success.
    pub async fn call_traced(
        &self,
        call: &HttpCall,
        timeout: Duration,
        trace: Option<&str>,
    ) -> Result<JsonText, CallError> {
        let made = tokio::time::timeout(timeout, self.make(call, trace)).await;
        made.unwrap_or_else(|_| {
            let within = timeout.as_secs_f64();
            Err(CallError::passing(format!("no answer within {within} s")))
        })
    }

    async fn make(&self, call: &HttpCall, trace: Option<&str>) -> Result<JsonText, CallError> {
        let mut hop = first(call, trace)?;
        for _ in 0..=HOPS {
            self.guard.check(&hop.url)?;
            let response = self.send(&hop).await?;
            match next(hop, &response)? {
                None => return answer::read(response).await,
                Some(redirected) => hop = redirected,
            }
        }
        Err(CallError::permanent(format!(
            "was redirected more than {HOPS} times"
        )))
    }

    async fn send(&self, hop: &Hop) -> Result<Response, CallError> {
        let mut request = self
            .client
            .request(hop.method.clone(), hop.url.clone())
            .headers(hop.headers.clone());
        if let Some(body) = &hop.body {
            request = request.body(body.as_str().to_owned());
        }
        request
            .send()
            .await
            .map_err(|error| CallError::transport(&error))
    }
}

fn first(call: &HttpCall, trace: Option<&str>) -> Result<Hop, CallError> {
    let bad =
        |what: &str, error: &dyn fmt::Display| CallError::permanent(format!("its {what}: {error}"));
    let url = Url::parse(&call.url).map_err(|error| bad("url is none", &error))?;
    let method = Method::from_bytes(call.method.as_bytes())
        .map_err(|error| bad("method is none", &error))?;
    let mut headers = HeaderMap::new();
    if call.body.is_some() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    if !method.is_safe() {
        let key = HeaderValue::from_str(&call.idempotency_key);
        headers.insert(
            IDEMPOTENCY_KEY,
            key.map_err(|error| bad("idempotency key cannot be sent", &error))?,
        );
    }
    // What no header can hold is no trace.
    if let Some(trace) = trace.and_then(|trace| HeaderValue::from_str(trace).ok()) {
        headers.insert(TRACEPARENT, trace);
    }
    for (name, value) in &call.headers {
        let name =
            HeaderName::from_bytes(name.as_bytes()).map_err(|error| bad("headers", &error))?;
        let value = HeaderValue::from_str(value).map_err(|error| bad("headers", &error))?;
        headers.insert(name, value);
    }
    Ok(Hop {
        method,
        url,
        headers,
        body: call.body.clone(),
    })
}

/// Where an answer leads on to, if it is a redirect.
fn next(hop: Hop, response: &Response) -> Result<Option<Hop>, CallError> {
    let status = response.status();
    let keeps_method = match status {
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => hop.method != Method::POST,
        StatusCode::SEE_OTHER => hop.method == Method::HEAD,
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => true,
        _ => return Ok(None),
    };
    let nowhere = || CallError::permanent(format!("answered {status} without a place to go on to"));
    let location = response.headers().get(LOCATION).ok_or_else(nowhere)?;
    let location = location.to_str().map_err(|_| nowhere())?;
    let mut url = hop.url.join(location).map_err(|_| nowhere())?;
    if hop.url.scheme() == "https" && url.scheme() == "http" {
        return Err(CallError::permanent("was redirected from https to http"));
    }
    // What a redirect brings to sign in with is not the author's.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    let mut headers = hop.headers;
    if url.origin() != hop.url.origin() {
        // Keys that the author wrote down for one host are not shown to another.
        let content_type = headers.remove(CONTENT_TYPE);
        headers.clear();
        headers.extend(content_type.map(|kind| (CONTENT_TYPE, kind)));
    }
    let (method, body) = if keeps_method {
        (hop.method, hop.body)
    } else {
        headers.remove(CONTENT_TYPE);
        headers.remove(IDEMPOTENCY_KEY);
        (Method::GET, None)
    };
    Ok(Some(Hop {
        method,
        url,
        headers,
        body,
    }))
}

#[cfg(test)]
mod tests;
