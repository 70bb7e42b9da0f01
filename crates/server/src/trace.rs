//! The span of a call: a child of the caller's span and the parent of what the call starts. Records method, route and status only.

use crate::route::RoutePolicy;
use crate::state::State;
use axum::Extension;
use axum::extract::{MatchedPath, Request, State as AxumState};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use leasehold_core::TraceContext;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Traces a call if its caller sends a `traceparent` or its route starts a trace. Inner layers find the call's own span in the `traceparent` header;
/// outer layers find it in the response's extensions.
pub(crate) async fn trace(
    AxumState(state): AxumState<State>,
    Extension(policy): Extension<RoutePolicy>,
    matched: MatchedPath,
    mut request: Request,
    next: Next,
) -> Response {
    let tracer = &state.telemetry.tracer;
    if !tracer.is_on() {
        return next.run(request).await;
    }
    let caller = caller(request.headers());
    let (method, route) = (request.method().clone(), matched.as_str());
    if caller.is_none() && !policy.starts_trace {
        return next.run(request).await;
    }
    let span = tracer.begin(format!("{method} {route}"), caller.as_ref());
    let mut span = span.server();
    let Some(context) = span.context() else {
        return next.run(request).await;
    };
    span.set_text("http.request.method", method);
    span.set_text("http.route", route);
    if let Ok(value) = HeaderValue::try_from(context.to_string()) {
        request.headers_mut().insert(TRACEPARENT, value);
    }
    let mut response = next.run(request).await;
    let status = response.status();
    span.set("http.response.status_code", i64::from(status.as_u16()));
    if status.is_server_error() {
        span.failed(status.to_string());
    }
    response.extensions_mut().insert(context);
    response
}

fn caller(headers: &HeaderMap) -> Option<TraceContext> {
    headers.get(TRACEPARENT)?.to_str().ok()?.parse().ok()
}
