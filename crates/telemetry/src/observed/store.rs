//! A store layer that times every call and counts its outcome. Changes no result.

use crate::Telemetry;
use crate::metrics::StoreSeries;
use crate::observed::event_counters::StoreEventCounters;
use leasehold_store::{Error, LayeredStore, Result, Store, StoreCall, StoreLayer};
use std::sync::Arc;
use std::time::Instant;

/// A store whose calls are timed and counted.
pub type ObservedStore = LayeredStore<StoreMetrics>;

/// Wraps this store. Calls that cannot fail, such as waiting for a notification, are not timed.
pub fn observe_store(inner: Arc<dyn Store>, telemetry: &Telemetry) -> ObservedStore {
    let metrics = &telemetry.metrics;
    let layer = StoreMetrics {
        series: StoreCall::all()
            .map(|call| StoreSeries::new(metrics, call.name()))
            .collect(),
        counters: StoreEventCounters::new(metrics.clone()),
    };
    LayeredStore::new(inner, layer)
}

/// Times the calls of a store and counts their outcomes.
pub struct StoreMetrics {
    /// The series of each call, by its index.
    series: Box<[StoreSeries]>,
    counters: StoreEventCounters,
}

impl StoreLayer for StoreMetrics {
    type Observer = StoreEventCounters;

    fn observer(&self) -> &StoreEventCounters {
        &self.counters
    }

    async fn call<T: Send>(
        &self,
        call: StoreCall,
        run: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        let begun = Instant::now();
        let answer = run.await;
        let error = answer.as_ref().err().map(Error::is_retryable);
        self.series[call.index()].record(begun.elapsed(), error);
        answer
    }
}
