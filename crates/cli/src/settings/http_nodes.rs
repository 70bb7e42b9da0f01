//! The settings of `http` nodes, whoever makes their calls.

use super::kind::Kind;
use super::known::{Known, of};
use anyhow::{Context, Result};
use leasehold_outbound::OutboundOptions;
use serde::{Deserialize, Serialize};

/// What each setting of `[http_nodes]` may be.
pub(super) const HTTP_NODES: &[Known] = &[of("http_nodes.allow", Kind::Allowed)];

/// What `http` nodes may call.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct HttpNodeSettings {
    /// Addresses, networks and names that may be called although they are not public.
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
