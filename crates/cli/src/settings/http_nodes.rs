//! The settings of `http` nodes, for the server and the worker.

use super::kind::SettingKind;
use super::registry::{SettingSpec, of};
use anyhow::{Context, Result};
use leasehold_outbound::OutboundOptions;
use serde::{Deserialize, Serialize};

/// The settings of `[http_nodes]` and their allowed values.
pub(super) const HTTP_NODES: &[SettingSpec] = &[of("http_nodes.allow", SettingKind::Allowed)];

/// Targets of `http` nodes.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct HttpNodeSettings {
    /// Non-public addresses, networks and names that may be called.
    pub(crate) allow: Vec<String>,
}

impl HttpNodeSettings {
    pub(crate) fn outbound(&self) -> Result<OutboundOptions> {
        let allow = self.allow.iter().map(|text| text.parse());
        let allow = allow
            .collect::<Result<_, _>>()
            .context("http_nodes.allow")?;
        Ok(OutboundOptions { allow })
    }
}
