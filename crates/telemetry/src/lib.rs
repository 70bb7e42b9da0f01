//! What Leasehold shows of itself: every metric, in one place; traces; and the ports watched from outside. Decides nothing.
//!
//! Whoever does something worth seeing has a [`Telemetry`]: cheap to clone, and one that nobody reads costs next to nothing.

mod metrics;
mod observed;
mod tracer;

pub use metrics::{DispatchFailure, Format, Level, Metrics, Route, Sight};
pub use observed::{ObservedEngine, ObservedStore, StoreMetrics, Tally, observe_store};
pub use tracer::{InvalidEndpoint, Span, TraceOptions, Tracer};

use std::sync::Arc;

/// Where a process counts and traces.
#[derive(Clone, Default)]
pub struct Telemetry {
    /// What it counts.
    pub metrics: Arc<Metrics>,
    /// What it traces.
    pub tracer: Tracer,
}

impl std::fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Telemetry").finish_non_exhaustive()
    }
}
