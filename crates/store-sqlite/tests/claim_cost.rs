//! What a claim costs SQLite does not grow with what waits, is blocked, is not due, is paused or runs, nor with the number of workspaces.
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

struct Room {
    f: Fixture,
    store: Arc<SqliteStore>,
}

impl Room {
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

    async fn enqueue(&self, site: &TestWorkspace, requests: usize) {
        for _ in 0..requests.div_ceil(5_000) {
            self.f.enqueue(site, requests.min(5_000)).await;
        }
    }

    async fn enqueue_for_later(&self, site: &TestWorkspace, requests: usize) {
        let later = self.f.clock.now() + Duration::from_secs(3_600);
        let new = |run_at: Timestamp| NewRequest {
            run_at: Some(run_at),
            ..new_request(site)
        };
        let all = (0..requests).map(|_| new(later)).collect();
        self.f.enqueue_all(site, all).await;
    }

    /// The steps of a claim that admits a full batch.
    async fn claim(&self) -> u64 {
        let claimed = self.f.claim(BATCH).await;
        assert_eq!(claimed.requests.len(), BATCH as usize);
        let cost = self.store.claim_cost();
        assert_eq!((cost.scanned, cost.sorts), (0, 0));
        cost.steps
    }
}

/// Index pages grow by a level now and then and nothing else may grow.
fn assert_alike(what: &str, small: u64, large: u64) {
    println!("{what}: {small} steps before, {large} after, for {BATCH} admissions");
    assert!(large * 10 <= small * 11, "{what}: {small} → {large}");
}

#[tokio::test]
async fn it_does_not_grow_with_the_backlog() {
    let room = Room::new().await;
    let t = room.f.site(100_000).await;
    room.enqueue(&t, 200).await;
    let small = room.claim().await;
    room.enqueue(&t, 20_000).await;
    assert_alike("backlog of 100 → 20,000", small, room.claim().await);
}

#[tokio::test]
async fn it_does_not_grow_with_what_is_blocked_paused_or_not_due() {
    let room = Room::new().await;
    let t = room.f.site(100_000).await;
    room.enqueue(&t, 300).await;
    let small = room.claim().await;
    let (full, paused) = (room.f.site(0).await, room.f.site(5).await);
    room.f.set_paused(paused.workspace, true).await;
    room.enqueue(&full, 5_000).await;
    room.enqueue(&paused, 5_000).await;
    room.enqueue_for_later(&t, 5_000).await;
    assert_alike("15,000 in the way", small, room.claim().await);
}

#[tokio::test]
async fn it_does_not_grow_with_the_number_of_workspaces() {
    let room = Room::new().await;
    for _ in 0..10 {
        let t = room.f.site(1_000).await;
        room.enqueue(&t, 30).await;
    }
    let small = room.claim().await;
    for number in 0..2_000 {
        let t = room.f.site(u32::from(number % 2 == 0)).await;
        room.enqueue(&t, 1).await;
    }
    assert_alike("10 → 2,010 workspaces", small, room.claim().await);
}

#[tokio::test]
async fn it_does_not_grow_with_what_runs() {
    let room = Room::new().await;
    let t = room.f.site(100_000).await;
    room.enqueue(&t, 5_000).await;
    let small = room.claim().await;
    for _ in 0..45 {
        room.claim().await;
    }
    assert_alike("100 → 4,700 running", small, room.claim().await);
}

#[tokio::test]
async fn an_idle_claim_costs_next_to_nothing_whatever_waits() {
    let room = Room::new().await;
    let full = room.f.site(0).await;
    room.enqueue(&full, 10_000).await;
    assert_eq!(room.f.claim(BATCH).await.requests, []);
    let cost = room.store.claim_cost();
    assert!(cost.steps < 300, "{cost:?}");
    assert!(cost.statements < 10, "{cost:?}");
}
