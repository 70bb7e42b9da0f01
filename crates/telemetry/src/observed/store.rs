//! A store as it is, with every call timed and counted by what came of it. Changes no answer.

use crate::Telemetry;
use crate::metrics::StoreSeries;
use crate::observed::tally::Tally;
use leasehold_store::{Error, LayeredStore, Result, Store, StoreCall, StoreLayer};
use std::sync::Arc;
use std::time::Instant;

/// A store whose calls are timed and counted.
pub type ObservedStore = LayeredStore<StoreMetrics>;

/// Watches this store; calls that cannot fail, such as waiting for a wake-up, are not timed.
pub fn observe_store(real: Arc<dyn Store>, telemetry: &Telemetry) -> ObservedStore {
    let metrics = &telemetry.metrics;
    let layer = StoreMetrics {
        series: StoreCall::all()
            .map(|call| StoreSeries::new(metrics, call.name()))
            .collect(),
        tally: Tally::new(metrics.clone()),
    };
    LayeredStore::new(real, layer)
}

/// Times the calls of a store, and counts what they come to.
pub struct StoreMetrics {
    /// The series of each call by its index, found once.
    series: Box<[StoreSeries]>,
    tally: Tally,
}

impl StoreLayer for StoreMetrics {
    type Observer = Tally;

    fn observer(&self) -> &Tally {
        &self.tally
    }

    async fn call<T: Send>(
        &self,
        call: StoreCall,
        run: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        let begun = Instant::now();
        let answer = run.await;
        let error = answer.as_ref().err().map(Error::is_retryable);
        self.series[call.index()].answered(begun.elapsed(), error);
        answer
    }
}
