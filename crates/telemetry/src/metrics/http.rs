//! Metrics of HTTP requests. Defines no metric, knows no route.

use super::Metrics;
use super::dispatch::{exemplar, now};
use super::labels::{Route, RouteStatus};
use leasehold_core::TraceContext;
use std::time::Duration;

impl Metrics {
    /// Records an answered HTTP request.
    pub fn call_answered(
        &self,
        route: &Route,
        status: u16,
        took: Duration,
        trace: Option<TraceContext>,
    ) {
        let answer = RouteStatus {
            method: route.method,
            route: route.route.clone(),
            status,
        };
        self.http_requests.get_or_create(&answer).inc();
        let seconds = self.http_seconds.get_or_create(route);
        seconds.observe(took.as_secs_f64(), exemplar(trace), now(trace));
    }
}
