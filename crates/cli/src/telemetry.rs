//! Sets up metrics and tracing from the settings.

use crate::settings::Settings;
use anyhow::Result;
use leasehold_console::Failure;
use leasehold_engine::Engine;
use leasehold_store::Store;
use leasehold_telemetry::{Metrics, ObservedEngine, Telemetry, Tracer, observe_store};
use std::sync::Arc;
use std::time::Duration;

/// Maximum time to export the last spans at shutdown.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Creates the metrics and the tracer of this process.
pub(crate) fn start(settings: &Settings, owner: &str) -> Result<Telemetry> {
    let mut telemetry = Telemetry {
        metrics: Arc::new(Metrics::new(settings.metrics.workspaces)),
        ..Telemetry::default()
    };
    if let Some(options) = settings.traces.options(owner) {
        let tracer = Tracer::export(&options, telemetry.metrics.clone());
        telemetry.tracer = tracer.map_err(|error| Failure::usage(error.to_string()))?;
        tracing::info!(endpoint = options.endpoint, "trace export enabled");
    }
    Ok(telemetry)
}

/// Exports the remaining spans, up to the timeout.
pub(crate) async fn flush(telemetry: &Telemetry) {
    telemetry.tracer.stop(FLUSH_TIMEOUT).await;
}

/// Wraps the store with metrics and spans.
pub(crate) fn store(real: Arc<dyn Store>, telemetry: &Telemetry) -> Arc<dyn Store> {
    Arc::new(observe_store(real, telemetry))
}

/// Wraps the engine with metrics and spans.
pub(crate) fn engine(real: Arc<dyn Engine>, telemetry: &Telemetry) -> Arc<dyn Engine> {
    Arc::new(ObservedEngine::new(real, telemetry))
}
