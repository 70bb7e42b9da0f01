//! Counts and times calls. Knows no route.

use crate::state::State;
use axum::extract::{MatchedPath, Request, State as AxumState};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use leasehold_core::TraceContext;
use leasehold_telemetry::Route;
use std::time::Instant;

/// The label of a call that matched no route.
const NO_ROUTE: &str = "none";

/// Counts and times a call, labelled with the route it matched, never with the requested path.
pub(crate) async fn count(
    AxumState(state): AxumState<State>,
    matched: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    let route = Route {
        method: method(request.method()),
        route: matched
            .as_ref()
            .map_or(NO_ROUTE, MatchedPath::as_str)
            .into(),
    };
    let begun = Instant::now();
    let response = next.run(request).await;
    let trace = response.extensions().get::<TraceContext>().copied();
    let status = response.status().as_u16();
    let metrics = &state.telemetry.metrics;
    metrics.call_answered(&route, status, begun.elapsed(), trace);
    response
}

/// Returns the method's label. Unknown methods share one, because a caller can send any.
fn method(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        _ => "other",
    }
}
