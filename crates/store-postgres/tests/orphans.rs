//! Rows that refer to jobs which somebody deleted by hand: they stop neither their queue nor other jobs.
#![allow(clippy::unwrap_used)]

use crate::support;

use leasehold_core::job::{JobClaim, JobEnd, JobFinish, JobFinished, RetryMode};
use leasehold_core::{JobId, JsonText};
use leasehold_store::ManualClock;
use leasehold_store::job::{JobStart, JobStore, NewJob};
use leasehold_store::queue::QueueStore;
use leasehold_store_conformance::clock;
use leasehold_store_postgres::PostgresStore;
use leasehold_testkit::TestDatabase;
use std::time::Duration;
use support::raw::connect;
use tokio_postgres::Client;

const DELETE: &str = include_str!("sql/job_delete.sql");

async fn open() -> (PostgresStore, ManualClock, Client, TestDatabase) {
    let (database, clock) = (support::database().await, clock());
    let store = support::store(&database, clock.clone());
    let client = connect(&database).await;
    (store, clock, client, database)
}

fn jobs(count: usize, start: JobStart) -> Vec<NewJob> {
    let job = NewJob {
        start,
        ..NewJob::new("mail", "send", JsonText::default())
    };
    vec![job; count]
}

async fn enqueue(store: &PostgresStore, jobs: &[NewJob]) -> Vec<JobId> {
    let enqueued = store.job_enqueue(jobs).await.unwrap();
    enqueued.iter().map(|one| one.id).collect()
}

async fn claim(store: &PostgresStore, max: u32) -> Vec<JobId> {
    let claim = JobClaim {
        queue: "mail".to_owned(),
        worker: "worker-1".to_owned(),
        max,
        lease: Some(Duration::from_secs(30)),
    };
    let claimed = store.job_claim(&claim).await.unwrap();
    claimed.jobs.iter().map(|job| job.id).collect()
}

#[tokio::test]
async fn waiting_row_without_a_job_does_not_stop_its_queue() {
    let (store, clock, client, _database) = open().await;
    let later = JobStart::In(Duration::from_secs(5));
    let waiting = enqueue(&store, &jobs(10, later)).await;
    for deleted in &waiting[..7] {
        client.execute(DELETE, &[&deleted.0]).await.unwrap();
    }
    let fresh = enqueue(&store, &jobs(2, JobStart::Now)).await;
    clock.advance(Duration::from_secs(10));
    // More orphans than the claim takes: they do not use up its number.
    assert_eq!(claim(&store, 3).await, waiting[7..]);
    assert_eq!(claim(&store, 10).await, fresh);
    let counts = store.queue_counts("mail").await.unwrap();
    assert_eq!((counts.ready, counts.scheduled, counts.running), (0, 0, 5));
}

#[tokio::test]
async fn leased_job_that_was_deleted_ends_and_expires_without_an_error() {
    let (store, clock, client, _database) = open().await;
    let all = enqueue(&store, &jobs(4, JobStart::Now)).await;
    let claim_jobs = JobClaim {
        queue: "mail".to_owned(),
        worker: "worker-1".to_owned(),
        max: 4,
        lease: Some(Duration::from_secs(30)),
    };
    let claimed = store.job_claim(&claim_jobs).await.unwrap().jobs;
    for deleted in &all[..3] {
        client.execute(DELETE, &[&deleted.0]).await.unwrap();
    }
    let retried = JobEnd::Failed {
        error: "no paper".to_owned(),
        retry_mode: RetryMode::Policy,
    };
    let ends = [JobEnd::Completed { result: None }, retried];
    let finishes: Vec<JobFinish> = claimed
        .iter()
        .zip(ends)
        .map(|(job, end)| JobFinish {
            claim: job.claim(),
            end,
        })
        .collect();
    let finished = store.job_finish("worker-1", &finishes).await.unwrap();
    assert_eq!(finished.jobs.len(), 2);
    assert!(!finished.jobs.contains(&JobFinished::NotWritten));
    clock.advance(Duration::from_secs(60));
    let expired = store.job_requeue_expired(10).await.unwrap();
    assert_eq!(
        expired.iter().map(|job| job.claim.job).collect::<Vec<_>>(),
        [all[3]]
    );
    assert_eq!(claim(&store, 10).await, [all[3]]);
}
