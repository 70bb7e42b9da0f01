//! Makes what the process counts and traces with, as the settings say.

use crate::settings::Settings;
use anyhow::Result;
use leasehold_console::Failure;
use leasehold_engine::Engine;
use leasehold_store::Store;
use leasehold_telemetry::{Metrics, ObservedEngine, Telemetry, Tracer, observe_store};
use std::sync::Arc;
use std::time::Duration;

/// A collector that is away does not keep the process.
const LAST_SPANS: Duration = Duration::from_secs(2);

/// For this process, as the settings say.
pub(crate) fn begin(settings: &Settings, owner: &str) -> Result<Telemetry> {
    let mut telemetry = Telemetry {
        metrics: Arc::new(Metrics::new(settings.metrics.workspaces)),
        ..Telemetry::default()
    };
    if let Some(options) = settings.traces.options(owner) {
        let tracer = Tracer::export(&options, telemetry.metrics.clone());
        telemetry.tracer = tracer.map_err(|error| Failure::usage(error.to_string()))?;
        tracing::info!(endpoint = options.endpoint, "traces are exported");
    }
    Ok(telemetry)
}

/// The last spans are exported, if there is time.
pub(crate) async fn end(telemetry: &Telemetry) {
    telemetry.tracer.stop(LAST_SPANS).await;
}

/// The store, watched.
pub(crate) fn store(real: Arc<dyn Store>, telemetry: &Telemetry) -> Arc<dyn Store> {
    Arc::new(observe_store(real, telemetry))
}

/// The engine, watched.
pub(crate) fn engine(real: Arc<dyn Engine>, telemetry: &Telemetry) -> Arc<dyn Engine> {
    Arc::new(ObservedEngine::new(real, telemetry))
}
