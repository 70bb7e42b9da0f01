//! The settings of metrics.

use super::registry::{SettingSpec, count};
use serde::{Deserialize, Serialize};

/// The settings of `[metrics]` and their allowed values.
pub(super) const METRICS: &[SettingSpec] = &[count("metrics.workspaces", 0, 1_000)];

/// Metrics.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct MetricSettings {
    /// Number of workspaces with their own series.
    pub(crate) workspaces: usize,
}

impl Default for MetricSettings {
    fn default() -> Self {
        Self { workspaces: 50 }
    }
}
