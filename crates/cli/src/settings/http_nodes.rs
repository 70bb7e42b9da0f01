//! The settings of `http` nodes, for the server and the worker.

use super::kind::SettingKind;
use super::registry::{SettingSpec, of};
use anyhow::{Context, Result};
use leasehold_outbound::OutboundOptions;
use serde::{Deserialize, Serialize};

/// The settings of `[http_nodes]` and their allowed values.
pub(super) const HTTP_NODES: &[SettingSpec] = &[
    of("http_nodes.allow", SettingKind::Targets),
    of("http_nodes.deny", SettingKind::Targets),
];

/// Targets of `http` nodes.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct HttpNodeSettings {
    /// Non-public addresses, networks and names that may be called.
    pub(crate) allow: Vec<String>,
    /// Addresses, networks and names that must not be called, even if public or allowed.
    pub(crate) deny: Vec<String>,
}

impl HttpNodeSettings {
    pub(crate) fn outbound(&self) -> Result<OutboundOptions> {
        let rules = |texts: &[String], setting: &'static str| {
            let rules = texts.iter().map(|text| text.parse());
            rules.collect::<Result<_, _>>().context(setting)
        };
        Ok(OutboundOptions {
            allow: rules(&self.allow, "http_nodes.allow")?,
            deny: rules(&self.deny, "http_nodes.deny")?,
        })
    }
}
