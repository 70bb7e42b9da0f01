//! The cost of a job claim does not depend on the number of waiting, scheduled, running or ended jobs.
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

async fn empty_store() -> SqliteStore {
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

async fn enqueue(store: &SqliteStore, queue: &str, start: JobStart, jobs: usize) {
    let jobs = vec![job(queue, start); jobs];
    store.job_enqueue(&jobs).await.unwrap();
}

/// Claims a full batch, completes it if `complete`, and returns the steps of the claim.
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
    assert_eq!((cost.scanned, cost.sorts, cost.recompiled), (0, 0, 0));
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

fn assert_similar(what: &str, small: u64, large: u64) {
    assert!(large * 10 <= small * 11, "{what}: {small} → {large}");
}

#[tokio::test]
async fn claim_cost_is_independent_of_the_backlog_and_scheduled_jobs() {
    let store = empty_store().await;
    enqueue(&store, "mail", JobStart::Now, 200).await;
    let small = claim(&store, false).await;
    enqueue(&store, "mail", JobStart::Now, 20_000).await;
    enqueue(&store, "post", JobStart::Now, 20_000).await;
    let later = JobStart::In(Duration::from_secs(3_600));
    enqueue(&store, "mail", later, 5_000).await;
    assert_similar("45,000 not claimable", small, claim(&store, false).await);
}

#[tokio::test]
async fn claim_cost_is_independent_of_running_and_ended_jobs() {
    let store = empty_store().await;
    enqueue(&store, "mail", JobStart::Now, 20_000).await;
    let small = claim(&store, false).await;
    for number in 0..100 {
        claim(&store, number % 2 == 0).await;
    }
    assert_similar(
        "5,000 running, 5,000 ended",
        small,
        claim(&store, false).await,
    );
}

#[tokio::test]
async fn claim_of_a_fresh_job_takes_few_steps() {
    let store = empty_store().await;
    enqueue(&store, "mail", JobStart::Now, 200).await;
    let steps = claim(&store, false).await;
    assert!(
        steps < 40 * u64::from(BATCH),
        "{steps} steps for {BATCH} jobs"
    );
}
