//! Renewals of leases and named locks while calls use all connections.

use crate::support;
use crate::support::raw::connect;
use leasehold_store::Clock;
use leasehold_store::lock::{LockAcquired, LockRequest};
use leasehold_store_conformance::factory::{LEASE, OWNER, claim_refs, ok};
use leasehold_store_conformance::job_factory::{WORKER, job_refs};
use leasehold_store_conformance::{Fixture, clock};
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use leasehold_testkit::eventually;
use std::sync::Arc;
use std::time::{Duration, Instant};

const LOCK_WAITS: &str = include_str!("../sql/lock_waits.sql");
const TABLE_LOCK: &str = include_str!("../sql/table_lock.sql");
const CONNECTIONS: usize = 3;

#[tokio::test]
async fn renewals_do_not_wait_for_calls_that_use_all_connections() {
    let (clock, database) = (clock(), support::database().await);
    let options = PostgresOptions {
        max_connections: CONNECTIONS,
        clock: Clock::Manual(clock.clone()),
        ..PostgresOptions::new(database.url())
    };
    let store = Arc::new(PostgresStore::new(&options).unwrap());
    let (operator, observer) = (connect(&database).await, connect(&database).await);
    let f = Fixture::new(store, clock).guarded(database);
    let t = f.workspace(10).await;
    f.enqueue(&t, 1).await;
    let claims = claim_refs(&f.claim(1).await);
    f.enqueue_jobs(1).await;
    let jobs = job_refs(&f.claim_jobs(1).await);
    let lock = LockRequest {
        name: "dispatch".to_owned(),
        owner: OWNER.to_owned(),
        at_most_for: LEASE,
    };
    let LockAcquired::Acquired { token, .. } = ok(f.store.lock_acquire(&lock).await) else {
        panic!("the lock is free");
    };

    operator.batch_execute("BEGIN").await.unwrap();
    operator.batch_execute(TABLE_LOCK).await.unwrap();
    let calls: Vec<_> = (0..CONNECTIONS * 2)
        .map(|_| {
            let (store, workspace) = (Arc::clone(&f.store), t.workspace);
            tokio::spawn(async move { store.workspace_get(workspace).await })
        })
        .collect();
    let all_wait = eventually(Duration::from_secs(10), async || {
        let row = observer.query_one(LOCK_WAITS, &[]).await.unwrap();
        row.get::<_, i64>("waiting") >= i64::try_from(CONNECTIONS).unwrap()
    });
    assert!(all_wait.await, "the calls do not use all connections");
    let begun = Instant::now();
    let renewed = ok(f.store.request_renew(OWNER, &claims, LEASE).await);
    assert_eq!(renewed.renewed.len(), 1);
    let renewed = ok(f.store.job_renew(WORKER, &jobs, LEASE).await);
    assert_eq!(renewed.renewed.len(), 1);
    assert!(ok(f.store.lock_extend(&token, LEASE).await));
    let waited = begun.elapsed();
    assert!(waited < Duration::from_secs(1), "{waited:?}");
    operator.batch_execute("ROLLBACK").await.unwrap();
    for call in calls {
        // The first ones may have given up waiting.
        drop(call.await.unwrap());
    }
}
