//! PostgreSQL crashes and restarts three times while requests arrive and executions finish.

use crate::order_workspace::OrderWorkspace;
use crate::program::{self, Program};
use crate::temporal::{self, Namespace};
use crate::{TIMEOUT, blocking, database};
use leasehold_core::{RequestId, RequestStatus};
use leasehold_store::request::Counts;
use leasehold_testkit::fresh_cluster;
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::interval;

const PACE: Duration = Duration::from_millis(50);
const RETRY_INTERVAL: Duration = Duration::from_millis(50);
const CRASHES: u64 = 3;
/// Requests that finish between two crashes.
const BETWEEN: u64 = 30;
/// Unfinished requests at which the load pauses: on a busy machine it would outrun the processes under test.
const MAX_OPEN: u64 = 60;

/// Enqueues with one idempotency key after the other until stopped; repeats a key until it is acknowledged.
async fn load(workspace: Arc<OrderWorkspace>, stop: Arc<AtomicBool>) -> HashMap<String, RequestId> {
    let mut enqueued = HashMap::new();
    let mut pace = interval(PACE);
    while !stop.load(Ordering::Relaxed) {
        pace.tick().await;
        let open = |counts: &Counts| counts.pending + counts.claimed + counts.dispatched;
        workspace
            .until("room for more load", |counts| open(counts) < MAX_OPEN)
            .await;
        let key = format!("order {}", enqueued.len());
        let mut tries = interval(RETRY_INTERVAL);
        let id = loop {
            tries.tick().await;
            if let Ok(id) = workspace
                .enqueue_once(&key, json!({"do": "complete"}))
                .await
            {
                break id;
            }
        };
        enqueued.insert(key, id);
    }
    enqueued
}

#[tokio::test(flavor = "multi_thread")]
async fn postgresql_crashes_lose_and_duplicate_nothing() {
    // fsync matters only for machine crashes; without it the restart is faster.
    let mut cluster = blocking(|| fresh_cluster(&[("fsync", "off")]));
    let store = database::store(&cluster.url());
    store.schema_migrate().await.unwrap();
    let namespace = Namespace::fresh();
    let mut serve = Program::new(&cluster.url(), namespace.address(), &namespace.name)
        .quick()
        .start();
    let pid = serve.pid();
    let _worker = namespace.worker();
    let workspace = Arc::new(OrderWorkspace::new(store, 1000).await);
    let stop = Arc::new(AtomicBool::new(false));
    let load = tokio::spawn(load(Arc::clone(&workspace), Arc::clone(&stop)));
    let mut ended = 0;
    for _ in 0..CRASHES {
        workspace
            .until("ended between crashes", |counts| {
                counts.completed >= ended + BETWEEN
            })
            .await;
        blocking(|| cluster.restart_immediate()).unwrap();
        ended = workspace.counts_after_restart().await.completed;
    }
    workspace
        .until("ended after the last", |counts| {
            counts.completed >= ended + BETWEEN
        })
        .await;
    stop.store(true, Ordering::Relaxed);
    let enqueued = load.await.unwrap();
    workspace
        .until_for(TIMEOUT, "all completed", |counts| {
            counts.completed == enqueued.len() as u64
        })
        .await;

    let requests = workspace.all().await;
    assert_eq!(requests.len(), enqueued.len());
    let keys: HashSet<_> = requests
        .iter()
        .filter_map(|request| request.idempotency_key.as_deref())
        .collect();
    assert_eq!(keys.len(), enqueued.len(), "a key has two requests");
    for request in &requests {
        let key = request.idempotency_key.as_deref().unwrap();
        assert_eq!(enqueued[key], request.id, "{request:?}");
        assert_eq!(request.status, RequestStatus::Completed, "{request:?}");
        assert_eq!(request.dispatch_failures, 0, "{request:?}");
    }
    let runs = namespace.closed_runs(requests.len()).await;
    temporal::assert_one_run_each(&runs, requests.iter().map(|request| request.execution));
    assert_eq!(workspace.slots().await.in_use, 0);
    assert!(serve.is_running());
    assert_eq!(serve.pid(), pid);
    println!("{} requests, {CRASHES} crashes", requests.len());
    program::stop(&mut serve);
}
