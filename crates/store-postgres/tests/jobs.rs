//! Jobs under concurrency on PostgreSQL: open transactions, locks held by others, rows from another cluster, old snapshots.
#![allow(clippy::unwrap_used)]

use crate::support;

use leasehold_core::job::{ClaimedJob, JobClaim, JobEnd, JobFinish, JobFinished};
use leasehold_core::payload::JsonText;
use leasehold_core::queue::HTTP_NODES;
use leasehold_core::{JobId, JobStatus};
use leasehold_store::job::JobStore;
use leasehold_store::job::{JobFilter, NewJob};
use leasehold_store::queue::QueueStore;
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use leasehold_testkit::{TestDatabase, eventually};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use support::raw::{connect, rejected_by};
use tokio_postgres::Client;

const QUEUE: &str = "mail";

/// Returns a store that uses the database's clock.
async fn open_store() -> (Arc<PostgresStore>, TestDatabase) {
    let database = support::database().await;
    (open(&database), database)
}

fn open(database: &TestDatabase) -> Arc<PostgresStore> {
    Arc::new(PostgresStore::new(&PostgresOptions::new(database.url())).unwrap())
}

fn job(n: i64) -> NewJob {
    NewJob::new(QUEUE, "send", JsonText::from(&json!({ "n": n })))
}

async fn claim_for(store: &PostgresStore, max: u32, lease: Option<Duration>) -> Vec<ClaimedJob> {
    let claim = JobClaim {
        queue: QUEUE.to_owned(),
        worker: "worker".to_owned(),
        max,
        lease,
    };
    store.job_claim(&claim).await.unwrap().jobs
}

async fn claim(store: &PostgresStore, max: u32) -> Vec<ClaimedJob> {
    claim_for(store, max, None).await
}

fn ids(jobs: &[ClaimedJob]) -> Vec<JobId> {
    jobs.iter().map(|job| job.id).collect()
}

async fn complete(store: &PostgresStore, job: &ClaimedJob) -> JobFinished {
    let finish = JobFinish {
        claim: job.claim(),
        end: JobEnd::Completed { result: None },
    };
    store.job_finish("worker", &[finish]).await.unwrap().jobs[0]
}

/// Begins a transaction that enqueues a job, and leaves it open.
async fn enqueue_open(database: &TestDatabase) -> (Client, JobId) {
    let client = connect(database).await;
    client.batch_execute("BEGIN").await.unwrap();
    let id = enqueue(&client, "{}").await;
    (client, id)
}

async fn enqueue(client: &Client, payload: &str) -> JobId {
    let row = client
        .query_one(
            include_str!("sql/job_enqueue.sql"),
            &[&tokio_postgres::types::Json(
                serde_json::from_str::<serde_json::Value>(payload).unwrap(),
            )],
        )
        .await
        .unwrap();
    JobId(row.get("id"))
}

#[tokio::test]
async fn late_commit_loses_no_job_and_blocks_none() {
    let (store, database) = open_store().await;
    store.job_enqueue(&[job(0)]).await.unwrap();
    let (first, early) = enqueue_open(&database).await;
    let (second, middle) = enqueue_open(&database).await;
    let late = store.job_enqueue(&[job(1), job(2)]).await.unwrap();
    assert_eq!(
        claim(&store, 10).await.len(),
        3,
        "open transactions block nothing"
    );
    second.batch_execute("COMMIT").await.unwrap();
    assert_eq!(ids(&claim(&store, 10).await), [middle]);
    assert_eq!(ids(&claim(&store, 10).await), []);
    let newest = store.job_enqueue(&[job(3)]).await.unwrap();
    first.batch_execute("COMMIT").await.unwrap();
    assert_eq!(
        ids(&claim(&store, 10).await),
        [early, newest[0].id],
        "the job enqueued first is claimed first"
    );
    assert!(early < late[0].id);
}

#[tokio::test]
async fn large_late_transaction_is_claimed_in_batches() {
    let (store, database) = open_store().await;
    store.job_enqueue(&[job(0)]).await.unwrap();
    assert_eq!(claim(&store, 1).await.len(), 1);
    let open = connect(&database).await;
    open.batch_execute("BEGIN").await.unwrap();
    let mut expected = Vec::new();
    for _ in 0..25 {
        expected.push(enqueue(&open, "{}").await);
    }
    let after = store.job_enqueue(&[job(1)]).await.unwrap();
    assert_eq!(ids(&claim(&store, 10).await), [after[0].id]);
    open.batch_execute("COMMIT").await.unwrap();
    let mut got = Vec::new();
    for _ in 0..3 {
        got.extend(ids(&claim(&store, 10).await));
    }
    assert_eq!(got, expected);
    assert_eq!(claim(&store, 10).await, []);
}

#[tokio::test]
async fn rolled_back_enqueue_leaves_no_job() {
    let (store, database) = open_store().await;
    store.job_enqueue(&[job(0)]).await.unwrap();
    let (open, gone) = enqueue_open(&database).await;
    store.job_enqueue(&[job(1)]).await.unwrap();
    assert_eq!(claim(&store, 10).await.len(), 2);
    open.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(claim(&store, 10).await, []);
    assert_eq!(store.job_get(gone).await.unwrap(), None);
}

#[tokio::test]
async fn overlapping_transactions_lose_and_duplicate_no_job() {
    let (store, database) = open_store().await;
    store.job_enqueue(&[job(0)]).await.unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let claimers: Vec<_> = (0..3)
        .map(|_| {
            let (store, done) = (open(&database), Arc::clone(&done));
            tokio::spawn(async move {
                let mut got = Vec::new();
                loop {
                    let last = done.load(Ordering::SeqCst);
                    let jobs = claim(&store, 7).await;
                    let empty = jobs.is_empty();
                    got.extend(ids(&jobs));
                    if last && empty {
                        return got;
                    }
                }
            })
        })
        .collect();
    let writers: Vec<_> = (0..6_u64)
        .map(|seed| {
            let url = database.url_in("leasehold");
            tokio::spawn(async move { write_at_random(&url, seed).await })
        })
        .collect();
    let mut committed = BTreeSet::new();
    for writer in writers {
        committed.extend(writer.await.unwrap());
    }
    done.store(true, Ordering::SeqCst);
    let mut claimed = Vec::new();
    for claimer in claimers {
        claimed.extend(claimer.await.unwrap());
    }
    let once: BTreeSet<JobId> = claimed.iter().copied().collect();
    assert_eq!(once.len(), claimed.len(), "none was claimed twice");
    committed.extend(once.iter().next().copied());
    assert_eq!(once, committed);
}

/// Two connections whose transactions overlap and end in any order; returns what was committed.
async fn write_at_random(url: &str, seed: u64) -> Vec<JobId> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut committed = Vec::new();
    let mut open: Vec<(Client, Vec<JobId>)> = Vec::new();
    for _ in 0..2 {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls)
            .await
            .unwrap();
        tokio::spawn(connection);
        client.batch_execute("BEGIN").await.unwrap();
        open.push((client, Vec::new()));
    }
    for _ in 0..120 {
        let (client, pending) = &mut open[random.usize(..2)];
        for _ in 0..random.usize(..4) {
            pending.push(enqueue(client, "{}").await);
        }
        match random.u8(..4) {
            0 => {
                client.batch_execute("COMMIT").await.unwrap();
                committed.append(pending);
                client.batch_execute("BEGIN").await.unwrap();
            }
            1 => {
                client.batch_execute("ROLLBACK").await.unwrap();
                pending.clear();
                client.batch_execute("BEGIN").await.unwrap();
            }
            _ => {}
        }
    }
    for (client, pending) in open {
        client.batch_execute("COMMIT").await.unwrap();
        committed.extend(pending);
    }
    committed
}

#[tokio::test]
async fn lease_that_expires_while_its_row_is_locked_is_lost() {
    let (store, database) = open_store().await;
    store.job_enqueue(&[job(0)]).await.unwrap();
    let lease = Duration::from_secs(5);
    let taken = claim_for(&store, 1, Some(lease)).await.remove(0);
    let other = connect(&database).await;
    other.batch_execute("BEGIN").await.unwrap();
    other
        .query_one(include_str!("sql/job_lease_lock.sql"), &[])
        .await
        .unwrap();
    assert_eq!(complete(&store, &taken).await, JobFinished::NotWritten);
    let watch = open(&database);
    let ended = eventually(Duration::from_secs(60), async || {
        let now = watch.job_get(taken.id).await.unwrap().unwrap();
        now.lease_expires_at.unwrap() <= leasehold_core::Timestamp::now()
    });
    assert!(ended.await);
    other.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(complete(&store, &taken).await, JobFinished::LeaseLost);
    assert_eq!(ids(&claim(&store, 1).await), [taken.id]);
}

#[tokio::test]
async fn running_claim_does_not_block_finish_or_enqueue() {
    let (store, database) = open_store().await;
    store.job_enqueue(&[job(0)]).await.unwrap();
    let taken = claim(&store, 1).await.remove(0);
    let claimer = connect(&database).await;
    claimer.batch_execute("BEGIN").await.unwrap();
    claimer
        .query_one(include_str!("sql/job_claim_lock.sql"), &[])
        .await
        .unwrap();
    let lease = Duration::from_secs(30);
    assert_eq!(
        store
            .job_renew("worker", &[taken.claim()], lease)
            .await
            .unwrap()
            .renewed,
        [taken.id]
    );
    assert_eq!(complete(&store, &taken).await, JobFinished::Completed);
    store.job_enqueue(&[job(1)]).await.unwrap();
    assert!(store.job_requeue_expired(10).await.unwrap().is_empty());
    claimer.batch_execute("ROLLBACK").await.unwrap();
}

#[tokio::test]
async fn sql_function_accepts_every_option() {
    let (store, database) = open_store().await;
    let client = connect(&database).await;
    let later = leasehold_core::Timestamp::now() + Duration::from_secs(3600);
    let row = client
        .query_one(include_str!("sql/job_enqueue_options.sql"), &[&later])
        .await
        .unwrap();
    let job = store.job_get(JobId(row.get("id"))).await.unwrap().unwrap();
    assert_eq!(job.status, JobStatus::Queued);
    assert_eq!((job.queue.as_str(), job.kind.as_str()), (QUEUE, "send"));
    assert_eq!((job.priority, job.retry.max_attempts), (7, 3));
    assert_eq!(job.timeout, Some(Duration::from_secs(90)));
    assert_eq!(job.trace_context.as_deref(), Some("trace"));
    assert_eq!(
        job.run_at.as_microsecond(),
        later.as_microsecond(),
        "run_at is stored exactly"
    );
    assert_eq!(claim(&store, 1).await, []);
}

#[tokio::test]
async fn sql_function_returns_the_holder_of_a_key() {
    let (store, database) = open_store().await;
    let client = connect(&database).await;
    let with_key = async |key: &str, window: Option<&str>| -> i64 {
        let row = client
            .query_one(include_str!("sql/job_enqueue_key.sql"), &[&key, &window])
            .await
            .unwrap();
        row.get("id")
    };
    let first = with_key("a", None).await;
    assert_eq!(with_key("a", None).await, first);
    assert_ne!(with_key("b", None).await, first);
    let taken = claim(&store, 1).await.remove(0);
    complete(&store, &taken).await;
    let next = with_key("a", Some("1 hour")).await;
    assert_ne!(next, first, "the key was free when its job had ended");
    assert_eq!(with_key("a", None).await, next);
}

#[tokio::test]
async fn sql_function_rejects_what_the_store_rejects() {
    let (store, database) = open_store().await;
    let client = connect(&database).await;
    let long = format!("\"{}\"", "x".repeat(262_144));
    let cases: [(&str, Option<i32>, Option<&str>, &str); 5] = [
        (&long, None, None, "54000"),
        ("{", None, None, "22P02"),
        ("{}", Some(0), None, "22023"),
        ("{}", Some(40_000), None, "22023"),
        ("{}", None, Some("-1 second"), "22023"),
    ];
    for (payload, attempts, timeout, code) in cases {
        let outcome = client
            .query_one(
                include_str!("sql/job_enqueue_bad.sql"),
                &[&payload, &attempts, &timeout],
            )
            .await;
        assert_eq!(rejected_by(outcome), code);
    }
    // A job that anyone enqueued there would be taken for an http call or a delay of a graph.
    for queue in [HTTP_NODES, "leasehold:any"] {
        let sql = include_str!("sql/job_enqueue_in_queue.sql");
        let outcome = client.query_one(sql, &[&queue]).await;
        assert_eq!(rejected_by(outcome), "22023");
        assert_eq!(store.queue_get(queue).await.unwrap(), None);
    }
    let left = store
        .job_list(&JobFilter::default(), leasehold_store::Page::first(10))
        .await
        .unwrap();
    assert_eq!(left, []);
}

#[tokio::test]
async fn view_shows_the_status_of_every_job() {
    let (store, database) = open_store().await;
    store
        .job_enqueue(&(0..4).map(job).collect::<Vec<_>>())
        .await
        .unwrap();
    let taken = claim(&store, 3).await;
    complete(&store, &taken[0]).await;
    let failed = JobFinish {
        claim: taken[1].claim(),
        end: JobEnd::Failed {
            error: "no".to_owned(),
            retry_mode: leasehold_core::job::RetryMode::Never,
        },
    };
    store.job_finish("worker", &[failed]).await.unwrap();
    let client = connect(&database).await;
    let rows = client
        .query(include_str!("sql/job_statuses.sql"), &[])
        .await
        .unwrap();
    let shown: Vec<(String, i64)> = rows
        .iter()
        .map(|row| (row.get("status"), row.get("jobs")))
        .collect();
    let expected = ["completed", "failed", "queued", "running"];
    assert_eq!(shown, expected.map(|status| (status.to_owned(), 1)));
}

#[tokio::test]
async fn job_with_infinite_run_at_is_rejected() {
    let (store, database) = open_store().await;
    let client = connect(&database).await;
    let outcome = client
        .query_one(include_str!("sql/job_enqueue_never.sql"), &[])
        .await;
    assert_eq!(rejected_by(outcome), "job_run_at");
    assert_eq!(claim(&store, 1).await, []);
}

#[tokio::test]
async fn late_transactions_are_removed_although_every_claim_is_full() {
    let (store, database) = open_store().await;
    let other = connect(&database).await;
    other
        .query_one(include_str!("sql/job_enqueue_other.sql"), &[])
        .await
        .unwrap();
    for n in 0..60 {
        other.batch_execute("BEGIN").await.unwrap();
        other
            .query_one(include_str!("sql/job_enqueue_other.sql"), &[])
            .await
            .unwrap();
        store.job_enqueue(&[job(n), job(n), job(n)]).await.unwrap();
        assert_eq!(claim(&store, 2).await.len(), 2);
        other.batch_execute("COMMIT").await.unwrap();
    }
    let row = other
        .query_one(include_str!("sql/job_late_transactions.sql"), &[])
        .await
        .unwrap();
    let passed: i64 = row.get("passed");
    assert!(
        passed < 40,
        "only transactions of other tests, not all sixty: {passed}"
    );
}

#[tokio::test]
async fn claim_that_requeues_an_expired_lease_notifies_other_processes() {
    let (store, database) = open_store().await;
    let waiter = open(&database);
    let mut subscription = waiter.subscribe_jobs();
    let elsewhere = NewJob::new("elsewhere", "send", JsonText::default());
    store.job_enqueue(&[elsewhere, job(1)]).await.unwrap();
    let lost = JobClaim {
        queue: "elsewhere".to_owned(),
        worker: "dead".to_owned(),
        max: 1,
        lease: Some(Duration::from_millis(500)),
    };
    let lost = store.job_claim(&lost).await.unwrap().jobs.remove(0);
    let soon = Duration::from_secs(60);
    let arm = || waiter.job_notification_arm();
    assert!(eventually(soon, async || arm().await.unwrap()).await);
    subscription.mark_unchanged();
    let taken_back = eventually(soon, async || {
        // Stays armed on a slow machine.
        arm().await.unwrap();
        claim(&store, 1).await;
        let job = store.job_get(lost.id).await.unwrap().unwrap();
        job.status == JobStatus::Queued
    });
    assert!(taken_back.await);
    tokio::time::timeout(soon, subscription.changed())
        .await
        .expect("the waiter is notified")
        .unwrap();
}
