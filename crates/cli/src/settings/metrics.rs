//! What is shown to whoever scrapes.

use super::known::{Known, count};
use serde::{Deserialize, Serialize};

/// What each setting of `[metrics]` may be.
pub(super) const METRICS: &[Known] = &[count("metrics.workspaces", 0, 1_000)];

/// How metrics are shown.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct MetricSettings {
    /// How many workspaces have series of their own.
    pub(crate) workspaces: usize,
}

impl Default for MetricSettings {
    fn default() -> Self {
        Self { workspaces: 50 }
    }
}
