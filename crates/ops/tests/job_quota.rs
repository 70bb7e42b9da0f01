//! Tests of the quota of worker keys: how often it measures in the store, on SQLite in memory.
#![allow(clippy::unwrap_used)]

use futures::future::join_all;
use leasehold_core::JsonText;
use leasehold_core::key::KeyScope;
use leasehold_ops::{self as ops, JobQuotas};
use leasehold_store::job::NewJob;
use leasehold_store::{Actor, LayeredStore, Result, SchemaStore, StoreCall, StoreLayer, fresh_id};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use leasehold_testkit::eventually;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;

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

/// Holds every enqueue until there is a permit, and counts those that were admitted.
struct SlowEnqueues {
    admitted: Arc<AtomicUsize>,
    go_on: Arc<Semaphore>,
}

impl StoreLayer for SlowEnqueues {
    type Observer = ();

    fn observer(&self) -> &() {
        &()
    }

    async fn call<T: Send>(
        &self,
        call: StoreCall,
        run: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        if call == StoreCall::named("job_enqueue") {
            self.admitted.fetch_add(1, Ordering::Relaxed);
            let _permit = self.go_on.acquire().await;
            return run.await;
        }
        run.await
    }
}

/// A measurement of the store misses what is being written. It used to be forgotten with every measurement.
#[tokio::test]
async fn jobs_in_flight_count_while_the_quota_is_measured_again() {
    let store = SqliteStore::open_in_memory(&SqliteOptions::default()).unwrap();
    store.schema_migrate().await.unwrap();
    let scope = KeyScope::Worker {
        queues: vec!["mail".to_owned()],
    };
    let spec = ops::key::KeySpec::full("worker", scope);
    let (key, _) = ops::key::create(&store, &spec, &Actor::Local)
        .await
        .unwrap();
    let (admitted, go_on) = (Arc::<AtomicUsize>::default(), Arc::new(Semaphore::new(0)));
    let layer = SlowEnqueues {
        admitted: Arc::clone(&admitted),
        go_on: Arc::clone(&go_on),
    };
    let store = LayeredStore::new(Arc::new(store), layer);
    let quotas = JobQuotas::new(80_000);
    // Eight fit, and each is so large that the store is measured again for the next.
    let payload = JsonText::trusted(format!("\"{}\"", "x".repeat(9_000)));
    let calls = (0..20).map(|_| {
        let jobs = vec![NewJob::new("mail", "kind", payload.clone())];
        ops::job::enqueue_within(&store, &quotas, &key, &[], jobs)
    });
    let calls = join_all(calls);
    let release = async {
        let begun = eventually(Duration::from_secs(60), || async {
            admitted.load(Ordering::Relaxed) >= 8
        });
        assert!(begun.await);
        go_on.add_permits(100);
    };
    let (ended, ()) = tokio::join!(calls, release);
    let enqueued = ended.iter().filter(|ended| ended.is_ok()).count();
    assert_eq!(enqueued, 8);
    assert_eq!(admitted.load(Ordering::Relaxed), 8);
}
