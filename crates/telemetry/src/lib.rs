//! Metrics and traces of Leasehold, and the store and engine ports with instrumentation. Decides nothing.
//!
//! A component that records something has a [`Telemetry`]: cheap to clone, and almost free if nothing reads it.

mod metrics;
mod observed;
mod tracer;

pub use metrics::{
    DispatchFailure, EngineSnapshot, ExpositionFormat, FloatGauge, Metrics, Route, StoreSnapshot,
};
pub use observed::{
    ObservedEngine, ObservedStore, StoreEventCounters, StoreMetrics, observe_store,
};
pub use tracer::{InvalidEndpoint, Span, TraceOptions, Tracer};

use std::sync::Arc;

/// The metrics and the tracer of a process.
#[derive(Clone, Default)]
pub struct Telemetry {
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// The tracer.
    pub tracer: Tracer,
}

impl std::fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Telemetry").finish_non_exhaustive()
    }
}
