//! Tests of the quota of worker keys: how often it measures in the store, on SQLite in memory.
#![allow(clippy::unwrap_used)]

use leasehold_core::key::KeyScope;
use leasehold_ops::JobQuotas;
use leasehold_store::{LayeredStore, Result, SchemaStore, StoreCall, StoreLayer, fresh_id};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the measurements.
struct Measurements(Arc<AtomicUsize>);

impl StoreLayer for Measurements {
    type Observer = ();

    fn observer(&self) -> &() {
        &()
    }

    async fn call<T: Send>(
        &self,
        call: StoreCall,
        run: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        if call == StoreCall::named("queue_open_bytes") {
            self.0.fetch_add(1, Ordering::Relaxed);
            // The other calls of the key begin meanwhile.
            tokio::task::yield_now().await;
        }
        run.await
    }
}

#[tokio::test]
async fn concurrent_calls_of_a_key_measure_once() {
    let store = SqliteStore::open_in_memory(&SqliteOptions::default()).unwrap();
    store.schema_migrate().await.unwrap();
    let measured = Arc::new(AtomicUsize::new(0));
    let store = LayeredStore::new(Arc::new(store), Measurements(Arc::clone(&measured)));
    let (quotas, key) = (JobQuotas::new(80_000), fresh_id());
    let scope = KeyScope::Worker {
        queues: vec!["mail".to_owned()],
    };
    let admit = || quotas.admit_bytes(&store, key, &scope, 1_000);
    for _ in 0..10 {
        admit().await.unwrap();
    }
    assert_eq!(measured.load(Ordering::Relaxed), 0, "an eighth is free");
    let (one, two, three, four) = tokio::join!(admit(), admit(), admit(), admit());
    assert!(
        [one, two, three, four]
            .iter()
            .all(|admitted| admitted.is_ok())
    );
    assert_eq!(measured.load(Ordering::Relaxed), 1);
}
