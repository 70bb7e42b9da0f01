//! Metrics of jobs: enqueued, claimed, renewed and finished.

use crate::observed_env::{ObservedEnv, changes};
use leasehold_core::JsonText;
use leasehold_core::job::{ClaimedJob, JobClaim, JobEnd, JobFinish, RetryMode};
use leasehold_store::job::{Dedup, NewJob};
use std::time::Duration;

const WORKER: &str = "a worker";
const LEASE: Duration = Duration::from_secs(30);

fn job(queue: &str) -> NewJob {
    NewJob::new(queue, "letter", JsonText::default())
}

async fn claimed(env: &ObservedEnv, max: u32) -> Vec<ClaimedJob> {
    let claim = JobClaim {
        queue: "mails".to_owned(),
        worker: WORKER.to_owned(),
        max,
        lease: Some(LEASE),
    };
    env.store.job_claim(&claim).await.unwrap().jobs
}

#[tokio::test]
async fn enqueued_jobs_are_counted_by_queue_without_duplicates() {
    let env = ObservedEnv::new().await;
    let once = NewJob {
        dedup: Some(Dedup {
            key: "once".to_owned(),
            window: None,
        }),
        ..job("mails")
    };
    let jobs = [
        job("mails"),
        once.clone(),
        job("prints"),
        once,
        job("mails"),
    ];
    env.store.job_enqueue(&jobs).await.unwrap();
    let expected = changes([
        ("leasehold_jobs_enqueued_total{queue=\"mails\"}", 3.0),
        ("leasehold_jobs_enqueued_total{queue=\"prints\"}", 1.0),
    ]);
    assert_eq!(env.changed(), expected);
    assert_eq!(claimed(&env, 2).await.len(), 2);
    let expected = changes([("leasehold_jobs_claimed_total{queue=\"mails\"}", 2.0)]);
    assert_eq!(env.changed(), expected);
}

#[tokio::test]
async fn finished_claims_are_counted_by_outcome() {
    let env = ObservedEnv::new().await;
    env.store.job_enqueue(&vec![job("mails"); 6]).await.unwrap();
    let jobs = claimed(&env, 6).await;
    env.changed();
    let failed = |retry_mode| JobEnd::Failed {
        error: "no such address".to_owned(),
        retry_mode,
    };
    let ends = [
        JobEnd::Completed { result: None },
        failed(RetryMode::Never),
        failed(RetryMode::Policy),
        JobEnd::Snoozed(Duration::from_secs(1)),
        JobEnd::Returned,
    ];
    let finishes = jobs.iter().zip(ends).map(|(job, end)| JobFinish {
        claim: job.claim(),
        end,
    });
    let mut finishes: Vec<JobFinish> = finishes.collect();
    finishes.push(finishes[0].clone());
    env.store.job_finish(WORKER, &finishes).await.unwrap();
    let expected = changes([
        ("leasehold_jobs_finished_total{outcome=\"completed\"}", 1.0),
        ("leasehold_jobs_finished_total{outcome=\"failed\"}", 1.0),
        ("leasehold_jobs_finished_total{outcome=\"queued\"}", 3.0),
        // The repeated finish, which is no lost lease.
        ("leasehold_jobs_finished_total{outcome=\"lease_lost\"}", 1.0),
    ]);
    assert_eq!(env.changed(), expected);
}

#[tokio::test]
async fn lost_lease_found_by_a_heartbeat_is_counted() {
    let env = ObservedEnv::new().await;
    env.store.job_enqueue(&vec![job("mails"); 3]).await.unwrap();
    let jobs = claimed(&env, 3).await;
    let claims: Vec<_> = jobs.iter().map(ClaimedJob::claim).collect();
    env.clock.advance(LEASE / 2);
    let kept = &claims[..1];
    env.store.job_renew(WORKER, kept, LEASE).await.unwrap();
    env.clock.advance(LEASE / 2);
    env.changed();
    let loss = ("leasehold_lease_losses_total{kind=\"job\"}", 1.0);
    let renewal = ("leasehold_lease_renewals_total{kind=\"job\"}", 1.0);
    let heartbeat = &claims[..2];
    env.store.job_renew(WORKER, heartbeat, LEASE).await.unwrap();
    assert_eq!(env.changed(), changes([loss, renewal]));
    // The same loss again, by a heartbeat and by a finish.
    env.store.job_renew(WORKER, heartbeat, LEASE).await.unwrap();
    assert_eq!(env.changed(), changes([renewal]));
    let finish = |claim| JobFinish {
        claim,
        end: JobEnd::Completed { result: None },
    };
    let refused = [finish(claims[1])];
    env.store.job_finish(WORKER, &refused).await.unwrap();
    let refused = ("leasehold_jobs_finished_total{outcome=\"lease_lost\"}", 1.0);
    assert_eq!(env.changed(), changes([refused]));
    let note = JsonText::default();
    let reported = env.store.job_progress(WORKER, claims[2], &note).await;
    assert!(!reported.unwrap());
    assert_eq!(env.changed(), changes([loss]));
}

#[tokio::test]
async fn heartbeat_of_a_finished_job_counts_no_lost_lease() {
    let env = ObservedEnv::new().await;
    env.store.job_enqueue(&[job("mails")]).await.unwrap();
    let claim = claimed(&env, 1).await[0].claim();
    let finish = JobFinish {
        claim,
        end: JobEnd::Completed { result: None },
    };
    env.store.job_finish(WORKER, &[finish]).await.unwrap();
    env.changed();
    // The heartbeat was sent while the result was being written.
    env.store.job_renew(WORKER, &[claim], LEASE).await.unwrap();
    assert_eq!(env.changed(), changes([]));
}

#[tokio::test]
async fn lost_lease_of_a_job_that_the_worker_claimed_again_is_counted() {
    let env = ObservedEnv::new().await;
    env.store.job_enqueue(&[job("mails")]).await.unwrap();
    let first = claimed(&env, 1).await[0].claim();
    env.clock.advance(LEASE * 2);
    env.unobserved.job_requeue_expired(10).await.unwrap();
    let second = claimed(&env, 1).await[0].claim();
    env.changed();
    let heartbeat = [first, second];
    env.store
        .job_renew(WORKER, &heartbeat, LEASE)
        .await
        .unwrap();
    let expected = changes([
        ("leasehold_lease_losses_total{kind=\"job\"}", 1.0),
        ("leasehold_lease_renewals_total{kind=\"job\"}", 1.0),
    ]);
    assert_eq!(env.changed(), expected);
}

#[tokio::test]
async fn renewed_and_expired_job_leases_are_counted() {
    let env = ObservedEnv::new().await;
    env.store.job_enqueue(&vec![job("mails"); 2]).await.unwrap();
    let jobs = claimed(&env, 2).await;
    env.changed();
    let claims: Vec<_> = jobs.iter().map(ClaimedJob::claim).collect();
    env.store.job_renew(WORKER, &claims, LEASE).await.unwrap();
    let expected = changes([("leasehold_lease_renewals_total{kind=\"job\"}", 2.0)]);
    assert_eq!(env.changed(), expected);
    env.clock.advance(LEASE * 2);
    env.store.job_requeue_expired(10).await.unwrap();
    let expected = changes([("leasehold_lease_expiries_total{kind=\"job\"}", 2.0)]);
    assert_eq!(env.changed(), expected);
}
