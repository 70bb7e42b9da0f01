//! The settings of `http` nodes, whoever makes their calls.

use anyhow::{Context, Result};
use leasehold_outbound::OutboundOptions;
use serde::{Deserialize, Deserializer, Serialize};

/// What `http` nodes may call.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct HttpNodeSettings {
    /// Addresses, networks and names that may be called although they are not public.
    #[serde(deserialize_with = "list")]
    pub(crate) allow: Vec<String>,
}

/// A list, or its entries in one text with commas between them, as a variable has to say it.
fn list<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Given {
        List(Vec<String>),
        Text(String),
    }
    Ok(match Given::deserialize(from)? {
        Given::List(entries) => entries,
        Given::Text(text) => {
            let entries = text.split(',').map(str::trim);
            entries
                .filter(|entry| !entry.is_empty())
                .map(str::to_owned)
                .collect()
        }
    })
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
