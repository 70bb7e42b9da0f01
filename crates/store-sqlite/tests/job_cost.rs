//! What a claim of jobs costs SQLite does not grow with what waits, is not due, runs or has ended.
#![allow(clippy::unwrap_used)]

use leasehold_core::JsonText;
use leasehold_core::job::{JobClaim, JobEnd, JobFinish};
use leasehold_store::Clock;
use leasehold_store::SchemaStore;
use leasehold_store::job::JobStore;
use leasehold_store::job::{JobStart, NewJob};
use leasehold_store_conformance::clock;
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use std::time::Duration;

const BATCH: u32 = 100;

async fn empty() -> SqliteStore {
    let options = SqliteOptions {
        clock: Clock::Manual(clock()),
        ..SqliteOptions::default()
    };
    let store = SqliteStore::open_in_memory(&options).unwrap();
    store.schema_migrate().await.unwrap();
    store
}

fn job(queue: &str, start: JobStart) -> NewJob {
    NewJob {
        start,
        ..NewJob::new(queue, "send", JsonText::default())
    }
}

async fn put(store: &SqliteStore, queue: &str, start: JobStart, jobs: usize) {
    let jobs = vec![job(queue, start); jobs];
    store.job_enqueue(&jobs).await.unwrap();
}

/// Claims a full batch, and completes it if told so; returns the steps of the claim.
async fn claim(store: &SqliteStore, complete: bool) -> u64 {
    let claim = JobClaim {
        queue: "mail".into(),
        worker: "worker-1".into(),
        max: BATCH,
        lease: None,
    };
    let claimed = store.job_claim(&claim).await.unwrap().jobs;
    assert_eq!(claimed.len(), BATCH as usize);
    let cost = store.claim_cost();
    assert_eq!((cost.scanned, cost.sorts), (0, 0));
    if complete {
        let end = |job: &leasehold_core::job::ClaimedJob| JobFinish {
            claim: job.claim(),
            end: JobEnd::Completed { result: None },
        };
        let finishes: Vec<JobFinish> = claimed.iter().map(end).collect();
        store.job_finish("worker-1", &finishes).await.unwrap();
    }
    cost.steps
}

fn assert_alike(what: &str, small: u64, large: u64) {
    assert!(large * 10 <= small * 11, "{what}: {small} → {large}");
}

#[tokio::test]
async fn it_does_not_grow_with_the_backlog_nor_with_what_is_not_due() {
    let store = empty().await;
    put(&store, "mail", JobStart::Now, 200).await;
    let small = claim(&store, false).await;
    put(&store, "mail", JobStart::Now, 20_000).await;
    put(&store, "post", JobStart::Now, 20_000).await;
    let later = JobStart::In(Duration::from_secs(3_600));
    put(&store, "mail", later, 5_000).await;
    assert_alike("45,000 in the way", small, claim(&store, false).await);
}

#[tokio::test]
async fn it_does_not_grow_with_what_runs_nor_with_what_has_ended() {
    let store = empty().await;
    put(&store, "mail", JobStart::Now, 20_000).await;
    let small = claim(&store, false).await;
    for number in 0..100 {
        claim(&store, number % 2 == 0).await;
    }
    assert_alike(
        "5,000 running, 5,000 ended",
        small,
        claim(&store, false).await,
    );
}

#[tokio::test]
async fn a_fresh_job_costs_a_claim_few_steps() {
    let store = empty().await;
    put(&store, "mail", JobStart::Now, 200).await;
    let steps = claim(&store, false).await;
    assert!(
        steps < 40 * u64::from(BATCH),
        "{steps} steps for {BATCH} jobs"
    );
}
