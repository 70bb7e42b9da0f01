//! Counts and times calls. Knows no route.

use crate::state::State;
use axum::extract::MatchedPath;
use axum::http::Method;
use axum::response::Response;
use leasehold_core::TraceContext;
use leasehold_telemetry::Route;
use std::time::Instant;

/// The label of a call that matched no route.
const NO_ROUTE: &str = "none";

/// A call that is counted and timed, labelled with the route it matched, never with the requested path.
pub(crate) struct CountedCall {
    route: Route,
    begun: Instant,
}

impl CountedCall {
    pub(crate) fn begin(matched: Option<MatchedPath>, called: &Method) -> Self {
        let route = matched.as_ref().map_or(NO_ROUTE, MatchedPath::as_str);
        Self {
            route: Route {
                method: method(called),
                route: route.into(),
            },
            begun: Instant::now(),
        }
    }

    pub(crate) fn end(self, state: &State, response: &Response) {
        let trace = response.extensions().get::<TraceContext>().copied();
        let status = response.status().as_u16();
        let metrics = &state.telemetry.metrics;
        metrics.call_answered(&self.route, status, self.begun.elapsed(), trace);
    }
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
