//! Renewals of leases and named locks while calls use all connections.

use super::wait_for_blocked;
use crate::support;
use crate::support::pace::promptly_within;
use crate::support::raw::connect;
use leasehold_store::Clock;
use leasehold_store::lock::{LockAcquired, LockRequest};
use leasehold_store_conformance::factory::{LEASE, OWNER, claim_refs, ok};
use leasehold_store_conformance::job_factory::{WORKER, job_refs};
use leasehold_store_conformance::{Fixture, clock};
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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
    let is_over = Arc::new(AtomicBool::new(false));
    let calls: Vec<_> = (0..CONNECTIONS * 2)
        .map(|_| {
            let (store, workspace) = (Arc::clone(&f.store), t.workspace);
            let is_over = Arc::clone(&is_over);
            // A call gives up after two seconds; the next one takes its connection.
            tokio::spawn(async move {
                while !is_over.load(Ordering::Relaxed) {
                    drop(store.workspace_get(workspace).await);
                }
            })
        })
        .collect();
    wait_for_blocked(&observer, i64::try_from(CONNECTIONS).unwrap()).await;
    let renewals = async {
        let renewed = ok(f.store.request_renew(OWNER, &claims, LEASE).await);
        assert_eq!(renewed.renewed.len(), 1);
        let renewed = ok(f.store.job_renew(WORKER, &jobs, LEASE).await);
        assert_eq!(renewed.renewed.len(), 1);
        assert!(ok(f.store.lock_extend(&token, LEASE).await));
    };
    promptly_within(Duration::from_secs(1), renewals).await;
    is_over.store(true, Ordering::Relaxed);
    operator.batch_execute("ROLLBACK").await.unwrap();
    for call in calls {
        call.await.unwrap();
    }
}
