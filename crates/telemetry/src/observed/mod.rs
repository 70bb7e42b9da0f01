//! The store and engine ports with instrumentation: outcomes of calls are counted here, once for all callers. Decides nothing.

mod engine;
mod event_counters;
mod recent_claims;
mod store;

pub use engine::ObservedEngine;
pub use event_counters::StoreEventCounters;
pub use store::{ObservedStore, StoreMetrics, observe_store};
