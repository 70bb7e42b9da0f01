//! The cost of a claim does not depend on the number of waiting, blocked, scheduled, paused or running requests, nor of workspaces.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use leasehold_core::Timestamp;
use leasehold_store::request::NewRequest;
use leasehold_store::{Clock, SchemaStore, Store};
use leasehold_store_conformance::factory::new_request;
use leasehold_store_conformance::{Fixture, TestWorkspace, clock};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use std::sync::Arc;
use std::time::Duration;

const BATCH: u32 = 100;

struct TestEnv {
    f: Fixture,
    store: Arc<SqliteStore>,
}

impl TestEnv {
    async fn new() -> Self {
        let clock = clock();
        let options = SqliteOptions {
            clock: Clock::Manual(clock.clone()),
            ..SqliteOptions::default()
        };
        let store = Arc::new(SqliteStore::open_in_memory(&options).unwrap());
        store.schema_migrate().await.unwrap();
        let f = Fixture::new(Arc::clone(&store) as Arc<dyn Store>, clock);
        Self { f, store }
    }

    async fn enqueue(&self, workspace: &TestWorkspace, requests: usize) {
        for _ in 0..requests.div_ceil(5_000) {
            self.f.enqueue(workspace, requests.min(5_000)).await;
        }
    }

    async fn enqueue_scheduled(&self, workspace: &TestWorkspace, requests: usize) {
        let later = self.f.clock.now() + Duration::from_secs(3_600);
        let new = |run_at: Timestamp| NewRequest {
            run_at: Some(run_at),
            ..new_request(workspace)
        };
        let all = (0..requests).map(|_| new(later)).collect();
        self.f.enqueue_all(workspace, all).await;
    }

    /// Claims a full batch and returns the steps it took.
    async fn claim(&self) -> u64 {
        let claimed = self.f.claim(BATCH).await;
        assert_eq!(claimed.requests.len(), BATCH as usize);
        let cost = self.store.claim_cost();
        assert_eq!((cost.scanned, cost.sorts, cost.recompiled), (0, 0, 0));
        cost.steps
    }
}

/// Allows 10 %: an index may gain a level.
fn assert_similar(what: &str, small: u64, large: u64) {
    println!("{what}: {small} steps before, {large} after, for {BATCH} admissions");
    assert!(large * 10 <= small * 11, "{what}: {small} → {large}");
}

#[tokio::test]
async fn claim_cost_is_independent_of_the_backlog() {
    let env = TestEnv::new().await;
    let t = env.f.workspace(100_000).await;
    env.enqueue(&t, 200).await;
    let small = env.claim().await;
    env.enqueue(&t, 20_000).await;
    assert_similar("backlog of 100 → 20,000", small, env.claim().await);
}

#[tokio::test]
async fn claim_cost_is_independent_of_blocked_paused_and_scheduled_requests() {
    let env = TestEnv::new().await;
    let t = env.f.workspace(100_000).await;
    env.enqueue(&t, 300).await;
    let small = env.claim().await;
    let (full, paused) = (env.f.workspace(0).await, env.f.workspace(5).await);
    env.f.set_paused(paused.workspace, true).await;
    env.enqueue(&full, 5_000).await;
    env.enqueue(&paused, 5_000).await;
    env.enqueue_scheduled(&t, 5_000).await;
    assert_similar("15,000 not claimable", small, env.claim().await);
}

#[tokio::test]
async fn claim_cost_is_independent_of_the_number_of_workspaces() {
    let env = TestEnv::new().await;
    for _ in 0..10 {
        let t = env.f.workspace(1_000).await;
        env.enqueue(&t, 30).await;
    }
    let small = env.claim().await;
    for number in 0..2_000 {
        let t = env.f.workspace(u32::from(number % 2 == 0)).await;
        env.enqueue(&t, 1).await;
    }
    assert_similar("10 → 2,010 workspaces", small, env.claim().await);
}

#[tokio::test]
async fn claim_cost_is_independent_of_running_executions() {
    let env = TestEnv::new().await;
    let t = env.f.workspace(100_000).await;
    env.enqueue(&t, 5_000).await;
    let small = env.claim().await;
    for _ in 0..45 {
        env.claim().await;
    }
    assert_similar("100 → 4,700 running", small, env.claim().await);
}

#[tokio::test]
async fn claim_without_a_ready_workspace_is_cheap() {
    let env = TestEnv::new().await;
    let full = env.f.workspace(0).await;
    env.enqueue(&full, 10_000).await;
    assert_eq!(env.f.claim(BATCH).await.requests, []);
    let cost = env.store.claim_cost();
    assert!(cost.steps < 300, "{cost:?}");
    assert!(cost.statements < 10, "{cost:?}");
}
