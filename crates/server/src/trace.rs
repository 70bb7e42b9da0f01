//! The span of a call: a child of the caller's span and the parent of what the call starts. Records method, route and status only.

use crate::route::RoutePolicy;
use crate::state::State;
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use leasehold_core::TraceContext;
use leasehold_telemetry::Span;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The span of a call that is traced.
pub(crate) struct CallSpan {
    span: Span,
    context: TraceContext,
}

/// Begins the span of a call if its caller sends a `traceparent` or its route starts a trace. The handler finds the call's own span in the `traceparent`
/// header.
pub(crate) fn begin(state: &State, policy: RoutePolicy, request: &mut Request) -> Option<CallSpan> {
    let tracer = &state.telemetry.tracer;
    if !tracer.is_on() {
        return None;
    }
    let caller = caller(request.headers());
    if caller.is_none() && !policy.starts_trace {
        return None;
    }
    let matched = request.extensions().get::<MatchedPath>()?;
    let (method, route) = (request.method(), matched.as_str());
    let span = tracer.begin(format!("{method} {route}"), caller.as_ref());
    let mut span = span.server();
    let context = span.context()?;
    span.set_text("http.request.method", method);
    span.set_text("http.route", route);
    if let Ok(value) = HeaderValue::try_from(context.to_string()) {
        request.headers_mut().insert(TRACEPARENT, value);
    }
    Some(CallSpan { span, context })
}

/// Ends the span of a call. Outer layers find it in the response's extensions.
pub(crate) fn end(call: CallSpan, response: &mut Response) {
    let CallSpan { mut span, context } = call;
    let status = response.status();
    span.set("http.response.status_code", i64::from(status.as_u16()));
    if status.is_server_error() {
        span.failed(status.to_string());
    }
    response.extensions_mut().insert(context);
}

fn caller(headers: &HeaderMap) -> Option<TraceContext> {
    headers.get(TRACEPARENT)?.to_str().ok()?.parse().ok()
}
