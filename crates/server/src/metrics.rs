//! What the server counts of itself, for Prometheus. Knows no route and nothing of what calls do.

use crate::state::State;
use axum::extract::{MatchedPath, Request, State as Reached};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use std::sync::Arc;
use std::time::Instant;

/// As OpenMetrics wants it.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Seconds, from a read out of memory to a long poll.
const BUCKETS: [f64; 13] = [
    0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 20.0, 60.0,
];

/// A route that is not there.
const NO_ROUTE: &str = "none";

pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Answer, Counter>,
    durations: Family<Route, Histogram>,
    pub(crate) open_connections: Gauge,
    pub(crate) refused_connections: Counter,
    pub(crate) open_streams: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answer {
    method: &'static str,
    route: Arc<str>,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    method: &'static str,
    route: Arc<str>,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("leasehold"),
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            open_connections: Gauge::default(),
            refused_connections: Counter::default(),
            open_streams: Gauge::default(),
        };
        let registry = &mut metrics.registry;
        registry.register(
            "build",
            "The program's version",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );
        registry.register("http_requests", "Calls answered", metrics.requests.clone());
        registry.register(
            "http_request_duration_seconds",
            "From the head of a call to the head of its answer",
            metrics.durations.clone(),
        );
        registry.register(
            "http_open_connections",
            "Connections that are open",
            metrics.open_connections.clone(),
        );
        registry.register(
            "http_refused_connections",
            "Connections that were refused because too many were open",
            metrics.refused_connections.clone(),
        );
        registry.register(
            "http_open_streams",
            "Streams of changes that are open",
            metrics.open_streams.clone(),
        );
        metrics
    }

    /// All of it, as text.
    pub(crate) fn shown(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

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
    let metrics = &state.metrics;
    let answer = Answer {
        method: route.method,
        route: route.route.clone(),
        status: response.status().as_u16(),
    };
    metrics.requests.get_or_create(&answer).inc();
    let took = begun.elapsed().as_secs_f64();
    metrics.durations.get_or_create(&route).observe(took);
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
