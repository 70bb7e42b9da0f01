//! What the server counts of its calls. Defines no metric, knows no route.

use super::Metrics;
use super::dispatch::{example, now};
use super::labels::{Answer, Route};
use leasehold_core::TraceContext;
use std::time::Duration;

impl Metrics {
    /// A call was answered with this status after so long.
    pub fn call_answered(
        &self,
        route: &Route,
        status: u16,
        took: Duration,
        trace: Option<TraceContext>,
    ) {
        let answer = Answer {
            method: route.method,
            route: route.route.clone(),
            status,
        };
        self.http_requests.get_or_create(&answer).inc();
        let seconds = self.http_seconds.get_or_create(route);
        seconds.observe(took.as_secs_f64(), example(trace), now(trace));
    }
}
