//! The settings of tracing.

use super::kind::{self, SettingKind};
use super::registry::{SettingSpec, count, optional};
use leasehold_telemetry::TraceOptions;
use serde::{Deserialize, Serialize};

/// The settings of `[traces]` and their allowed values.
pub(super) const TRACES: &[SettingSpec] = &[
    optional(
        "traces.endpoint",
        SettingKind::Text(kind::collector),
        "http://127.0.0.1:4317",
    ),
    count("traces.per_second", 0, 1_000_000),
];

/// Trace export.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TraceSettings {
    /// Tracing is off if not set.
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
    /// The tracer's options; `None` if tracing is off.
    pub(crate) fn options(&self, instance: &str) -> Option<TraceOptions> {
        Some(TraceOptions {
            endpoint: self.endpoint.clone()?,
            per_second: self.per_second,
            instance: instance.to_owned(),
        })
    }
}
