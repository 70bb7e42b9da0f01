//! Makes the engine that the settings name, and says how it is. Connects to nothing: the engine does when it is first asked.

use crate::settings::{EngineKind, Settings, TemporalSettings};
use anyhow::{Context, Result, bail};
use leasehold_core::why::EngineFacts;
use leasehold_engine::Engine;
use leasehold_engine_temporal::{ClientCertificate, TemporalEngine, TemporalOptions, Tls};
use leasehold_runtime::Gate;
use leasehold_server::EngineWatch;
use std::path::Path;
use std::sync::Arc;

/// The engine, if there is one.
pub(crate) fn make(settings: &Settings, identity: &str) -> Result<Option<Arc<dyn Engine>>> {
    match settings.engine.kind {
        EngineKind::Embedded => Ok(None),
        EngineKind::Temporal => temporal(&settings.temporal, identity).map(Some),
    }
}

/// What this instance knows of its engine.
pub(crate) struct Watch {
    /// None without an engine.
    pub(crate) gate: Option<Arc<Gate>>,
    /// Whether this instance starts executions in it.
    pub(crate) dispatches: bool,
}

impl EngineWatch for Watch {
    fn facts(&self) -> EngineFacts {
        let Some(gate) = &self.gate else {
            return EngineFacts::Missing;
        };
        match gate.trouble() {
            Some(error) => EngineFacts::Down { error },
            None if self.dispatches => EngineFacts::Well,
            None => EngineFacts::NotDispatchedHere,
        }
    }
}

fn temporal(settings: &TemporalSettings, identity: &str) -> Result<Arc<dyn Engine>> {
    let options = TemporalOptions {
        address: settings.address.clone(),
        namespace: settings.namespace.clone(),
        tls: tls(settings)?,
        api_key: settings.api_key.clone().map(Into::into),
        identity: identity.to_owned(),
        graph_workflow_type: settings.graph_workflow_type.clone(),
        graph_task_queue: settings.graph_task_queue.clone(),
        connect_timeout: settings.connect_timeout.0,
        call_timeout: settings.call_timeout.0,
    };
    let engine = TemporalEngine::new(options).context("temporal")?;
    Ok(Arc::new(engine))
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

fn read(name: &str, file: &Path) -> Result<Vec<u8>> {
    std::fs::read(file).with_context(|| format!("{name}: {} cannot be read", file.display()))
}
