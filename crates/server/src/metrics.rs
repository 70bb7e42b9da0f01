//! Counts calls and times them. Knows no route and nothing of what calls do.

use crate::state::State;
use axum::extract::{MatchedPath, Request, State as Reached};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use leasehold_core::TraceContext;
use leasehold_telemetry::Route;
use std::time::Instant;

/// A route that is not there.
const NO_ROUTE: &str = "none";

/// Counts a call and times it, by the route it matched and never by the path it named.
pub(crate) async fn count(
    Reached(state): Reached<State>,
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

/// Anybody can make up methods; they are all one to us.
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
