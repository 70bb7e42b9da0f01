//! What is shown to whoever scrapes.

use serde::{Deserialize, Serialize};

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
