//! Builds the engine from the settings and reports its health. Connects lazily, at the first call.

use crate::settings::{EngineKind, Settings, TemporalSettings};
use anyhow::{Context, Result, bail};
use leasehold_core::why::EngineFacts;
use leasehold_crash_marker::CrashMarkers;
use leasehold_engine::Engine;
use leasehold_engine_embedded::{EmbeddedEngine, EmbeddedOptions, NodeRunner};
use leasehold_engine_temporal::{ClientCertificate, TemporalEngine, TemporalOptions, TemporalTls};
use leasehold_outbound::Outbound;
use leasehold_runtime::{CircuitBreaker, StoreSource};
use leasehold_server::EngineWatch;
use leasehold_store::Store;
use leasehold_telemetry::EngineSnapshot;
use std::path::Path;
use std::sync::Arc;

/// An engine with validated settings, to be started with a store.
pub(crate) enum EngineBuilder {
    /// The embedded engine in this process.
    Embedded(Outbound),
    /// Temporal, which needs no store.
    Temporal(Arc<dyn Engine>),
}

impl EngineBuilder {
    pub(crate) fn new(settings: &Settings, identity: &str, markers: &CrashMarkers) -> Result<Self> {
        match settings.engine.kind {
            EngineKind::Embedded => {
                let outbound = Outbound::new(settings.http_nodes.outbound()?);
                Ok(Self::Embedded(outbound.context("http_nodes")?))
            }
            EngineKind::Temporal => {
                temporal(&settings.temporal, identity, markers).map(Self::Temporal)
            }
        }
    }

    /// Returns the engine on this store. Starts nothing.
    pub(crate) fn engine(
        &self,
        store: &Arc<dyn Store>,
        identity: &str,
        markers: &CrashMarkers,
    ) -> Arc<dyn Engine> {
        match self {
            Self::Temporal(engine) => Arc::clone(engine),
            Self::Embedded(_) => {
                let engine = EmbeddedEngine::new(store.clone(), EmbeddedOptions::new(identity));
                Arc::new(engine.with_crash_markers(markers.clone()))
            }
        }
    }

    /// Starts the node runners of this process, if the engine is the embedded one.
    pub(crate) fn start_runners(
        self,
        store: &Arc<dyn Store>,
        settings: &Settings,
    ) -> Result<Option<NodeRunner>> {
        match self {
            Self::Temporal(_) => Ok(None),
            Self::Embedded(outbound) => {
                let options = settings.embedded.options();
                let source = Arc::new(StoreSource::new(store.clone()));
                let runners = NodeRunner::start(source, outbound, &options);
                Ok(Some(runners.context("embedded")?))
            }
        }
    }
}

/// Describes the engine on one line.
pub(crate) fn describe(settings: &Settings) -> String {
    let temporal = &settings.temporal;
    match settings.engine.kind {
        EngineKind::Embedded => "embedded (graphs run in this process)".to_owned(),
        EngineKind::Temporal => format!(
            "Temporal at {}, namespace {}",
            temporal.address, temporal.namespace
        ),
    }
}

/// The state of the engine as this instance sees it.
pub(crate) struct EngineMonitor {
    pub(crate) breaker: Arc<CircuitBreaker>,
    /// Whether this instance dispatches.
    pub(crate) dispatches: bool,
}

impl EngineWatch for EngineMonitor {
    fn facts(&self) -> EngineFacts {
        match self.breaker.outage_error() {
            Some(error) => EngineFacts::Down { error },
            None if self.dispatches => EngineFacts::Healthy,
            None => EngineFacts::NotDispatchedHere,
        }
    }

    fn snapshot(&self) -> Option<EngineSnapshot> {
        self.dispatches.then(|| EngineSnapshot {
            healthy: self.breaker.is_engine_healthy(),
            breaker: self.breaker.state(),
            allowance: self.breaker.allowance(),
            start_failing: self.breaker.failing_requests(),
        })
    }
}

fn temporal(
    settings: &TemporalSettings,
    identity: &str,
    markers: &CrashMarkers,
) -> Result<Arc<dyn Engine>> {
    let engine = TemporalEngine::new(temporal_options(settings, identity)?).context("temporal")?;
    Ok(Arc::new(engine.with_crash_markers(markers.clone())))
}

/// Connection options of Temporal.
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

fn tls(settings: &TemporalSettings) -> Result<Option<TemporalTls>> {
    let client = match (&settings.tls_certificate_file, &settings.tls_key_file) {
        (Some(certificate), Some(key)) => Some(ClientCertificate {
            certificate: read("temporal.tls_certificate_file", certificate)?,
            key: read("temporal.tls_key_file", key)?,
        }),
        (None, None) => None,
        _ => bail!("temporal.tls_certificate_file and temporal.tls_key_file must be set together"),
    };
    let ca = match &settings.tls_ca_file {
        Some(file) => Some(read("temporal.tls_ca_file", file)?),
        None => None,
    };
    let wanted = settings.tls || ca.is_some() || client.is_some() || settings.tls_domain.is_some();
    Ok(wanted.then(|| TemporalTls {
        ca,
        domain: settings.tls_domain.clone(),
        client,
    }))
}

/// Reads the file of a setting.
pub(crate) fn read(name: &str, file: &Path) -> Result<Vec<u8>> {
    std::fs::read(file).with_context(|| format!("{name}: cannot read {}", file.display()))
}

/// Reads the text file of a setting.
pub(crate) fn read_text(name: &str, file: &Path) -> Result<String> {
    let text = String::from_utf8(read(name, file)?);
    text.with_context(|| format!("{name}: {} is not a UTF-8 text file", file.display()))
}
