//! The settings of traces, and how they become the tracer's options.

use super::kind::{self, Kind};
use super::known::{Known, count, optional};
use leasehold_telemetry::TraceOptions;
use serde::{Deserialize, Serialize};

/// What each setting of `[traces]` may be.
pub(super) const TRACES: &[Known] = &[
    optional(
        "traces.endpoint",
        Kind::Text(kind::collector),
        "http://127.0.0.1:4317",
    ),
    count("traces.per_second", 0, 1_000_000),
];

/// Whether and where traces are exported.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TraceSettings {
    /// None are made if it is not set.
    pub(crate) endpoint: Option<String>,
    pub(crate) per_second: u32,
}

impl Default for TraceSettings {
    fn default() -> Self {
        Self {
            endpoint: None,
            per_second: 50,
        }
    }
}

impl TraceSettings {
    /// For this instance; none if nothing is traced.
    pub(crate) fn options(&self, instance: &str) -> Option<TraceOptions> {
        Some(TraceOptions {
            endpoint: self.endpoint.clone()?,
            per_second: self.per_second,
            instance: instance.to_owned(),
        })
    }
}
