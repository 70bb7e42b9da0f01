//! Makes the engine that the settings name, and says how it is. Connects to nothing: the engine does when it is first asked.

use crate::settings::{EngineKind, Settings, TemporalSettings};
use anyhow::{Context, Result, bail};
use leasehold_core::why::EngineFacts;
use leasehold_engine::Engine;
use leasehold_engine_embedded::{EmbeddedEngine, EmbeddedOptions, NodeRunners};
use leasehold_engine_temporal::{ClientCertificate, TemporalEngine, TemporalOptions, Tls};
use leasehold_outbound::Outbound;
use leasehold_runtime::{Gate, StoreSource};
use leasehold_server::EngineWatch;
use leasehold_store::Store;
use std::path::Path;
use std::sync::Arc;

/// An engine that only waits for its store. What can be wrong with its settings is known by now.
pub(crate) enum Prepared {
    /// This process.
    Embedded(Outbound),
    /// Temporal, which needs no store.
    Temporal(Arc<dyn Engine>),
}

impl Prepared {
    pub(crate) fn new(settings: &Settings, identity: &str) -> Result<Self> {
        match settings.engine.kind {
            EngineKind::Embedded => {
                let outbound = Outbound::new(settings.http_nodes.outbound()?);
                Ok(Self::Embedded(outbound.context("http_nodes")?))
            }
            EngineKind::Temporal => temporal(&settings.temporal, identity).map(Self::Temporal),
        }
    }

    /// The engine, and what works on its nodes in this process, which has begun.
    pub(crate) fn start(
        self,
        store: &Arc<dyn Store>,
        settings: &Settings,
        identity: &str,
    ) -> Result<(Arc<dyn Engine>, Option<NodeRunners>)> {
        match self {
            Self::Temporal(engine) => Ok((engine, None)),
            Self::Embedded(outbound) => {
                let options = settings.embedded.options();
                let source = Arc::new(StoreSource::new(store.clone()));
                let runners = NodeRunners::start(source, outbound, &options);
                let options = EmbeddedOptions::new(identity);
                let engine = EmbeddedEngine::new(store.clone(), options);
                Ok((Arc::new(engine), Some(runners.context("embedded")?)))
            }
        }
    }
}

/// The engine in a few words.
pub(crate) fn shown(settings: &Settings) -> String {
    let temporal = &settings.temporal;
    match settings.engine.kind {
        EngineKind::Embedded => "embedded: graphs run in this process".to_owned(),
        EngineKind::Temporal => format!(
            "Temporal at {}, namespace {}",
            temporal.address, temporal.namespace
        ),
    }
}

/// What this instance knows of its engine.
pub(crate) struct Watch {
    pub(crate) gate: Arc<Gate>,
    /// Whether this instance starts executions in it.
    pub(crate) dispatches: bool,
}

impl EngineWatch for Watch {
    fn facts(&self) -> EngineFacts {
        match self.gate.trouble() {
            Some(error) => EngineFacts::Down { error },
            None if self.dispatches => EngineFacts::Well,
            None => EngineFacts::NotDispatchedHere,
        }
    }

    fn allowance(&self) -> Option<usize> {
        self.dispatches.then(|| self.gate.allowance())
    }
}

fn temporal(settings: &TemporalSettings, identity: &str) -> Result<Arc<dyn Engine>> {
    let engine = TemporalEngine::new(temporal_options(settings, identity)?).context("temporal")?;
    Ok(Arc::new(engine))
}

/// How to reach Temporal, as this one.
pub(crate) fn temporal_options(
    settings: &TemporalSettings,
    identity: &str,
) -> Result<TemporalOptions> {
    Ok(TemporalOptions {
        address: settings.address.clone(),
        namespace: settings.namespace.clone(),
        tls: tls(settings)?,
        api_key: settings.api_key.clone().map(Into::into),
        identity: identity.to_owned(),
        graph_workflow_type: settings.graph_workflow_type.clone(),
        graph_task_queue: settings.graph_task_queue.clone(),
        connect_timeout: settings.connect_timeout.0,
        call_timeout: settings.call_timeout.0,
    })
}

fn tls(settings: &TemporalSettings) -> Result<Option<Tls>> {
    let client = match (&settings.tls_certificate_file, &settings.tls_key_file) {
        (Some(certificate), Some(key)) => Some(ClientCertificate {
            certificate: read("temporal.tls_certificate_file", certificate)?,
            key: read("temporal.tls_key_file", key)?,
        }),
        (None, None) => None,
        _ => bail!("temporal.tls_certificate_file and temporal.tls_key_file go together"),
    };
    let ca = match &settings.tls_ca_file {
        Some(file) => Some(read("temporal.tls_ca_file", file)?),
        None => None,
    };
    let wanted = settings.tls || ca.is_some() || client.is_some() || settings.tls_domain.is_some();
    Ok(wanted.then(|| Tls {
        ca,
        domain: settings.tls_domain.clone(),
        client,
    }))
}

/// What a file that a setting names holds.
pub(crate) fn read(name: &str, file: &Path) -> Result<Vec<u8>> {
    std::fs::read(file).with_context(|| format!("{name}: {} cannot be read", file.display()))
}

/// The same where it must be text.
pub(crate) fn read_text(name: &str, file: &Path) -> Result<String> {
    let text = String::from_utf8(read(name, file)?);
    text.with_context(|| format!("{name}: {} holds no text", file.display()))
}
