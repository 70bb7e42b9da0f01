//! Jobs: put into queues, taken, kept and ended.

use crate::observed_env::{ObservedEnv, moves};
use leasehold_core::JsonText;
use leasehold_core::job::{Again, ClaimedJob, JobClaim, JobEnd, JobFinish};
use leasehold_store::job::{Dedup, NewJob};
use std::time::Duration;

const WORKER: &str = "a worker";
const LEASE: Duration = Duration::from_secs(30);

fn job(queue: &str) -> NewJob {
    NewJob::new(queue, "letter", JsonText::default())
}

async fn claimed(ground: &ObservedEnv, max: u32) -> Vec<ClaimedJob> {
    let claim = JobClaim {
        queue: "mails".to_owned(),
        worker: WORKER.to_owned(),
        max,
        lease: Some(LEASE),
    };
    ground.store.job_claim(&claim).await.unwrap().jobs
}

#[tokio::test]
async fn jobs_are_counted_by_queue_and_those_that_were_there_are_not() {
    let ground = ObservedEnv::new().await;
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
    ground.store.job_enqueue(&jobs).await.unwrap();
    let expected = moves([
        ("leasehold_jobs_enqueued_total{queue=\"mails\"}", 3.0),
        ("leasehold_jobs_enqueued_total{queue=\"prints\"}", 1.0),
    ]);
    assert_eq!(ground.moved(), expected);
    assert_eq!(claimed(&ground, 2).await.len(), 2);
    let expected = moves([("leasehold_jobs_claimed_total{queue=\"mails\"}", 2.0)]);
    assert_eq!(ground.moved(), expected);
}

#[tokio::test]
async fn every_end_of_a_claim_is_counted_by_what_came_of_it() {
    let ground = ObservedEnv::new().await;
    ground
        .store
        .job_enqueue(&vec![job("mails"); 6])
        .await
        .unwrap();
    let jobs = claimed(&ground, 6).await;
    ground.moved();
    let failed = |again| JobEnd::Failed {
        error: "no such address".to_owned(),
        again,
    };
    let ends = [
        JobEnd::Completed { result: None },
        failed(Again::Never),
        failed(Again::Policy),
        JobEnd::Snoozed(Duration::from_secs(1)),
        JobEnd::GivenBack,
    ];
    let finishes = jobs.iter().zip(ends).map(|(job, end)| JobFinish {
        claim: job.claim(),
        end,
    });
    let mut finishes: Vec<JobFinish> = finishes.collect();
    finishes.push(finishes[0].clone());
    ground.store.job_finish(WORKER, &finishes).await.unwrap();
    let expected = moves([
        ("leasehold_jobs_finished_total{outcome=\"completed\"}", 1.0),
        ("leasehold_jobs_finished_total{outcome=\"failed\"}", 1.0),
        ("leasehold_jobs_finished_total{outcome=\"queued\"}", 3.0),
        ("leasehold_jobs_finished_total{outcome=\"lease_lost\"}", 1.0),
        ("leasehold_lease_losses_total{kind=\"job\"}", 1.0),
    ]);
    assert_eq!(ground.moved(), expected);
}

#[tokio::test]
async fn leases_of_jobs_are_counted_when_renewed_and_when_taken_back() {
    let ground = ObservedEnv::new().await;
    ground
        .store
        .job_enqueue(&vec![job("mails"); 2])
        .await
        .unwrap();
    let jobs = claimed(&ground, 2).await;
    ground.moved();
    let claims: Vec<_> = jobs.iter().map(ClaimedJob::claim).collect();
    ground
        .store
        .job_renew(WORKER, &claims, LEASE)
        .await
        .unwrap();
    let expected = moves([("leasehold_lease_renewals_total{kind=\"job\"}", 2.0)]);
    assert_eq!(ground.moved(), expected);
    ground.clock.advance(LEASE * 2);
    ground.store.job_requeue_expired(10).await.unwrap();
    let expected = moves([("leasehold_lease_expiries_total{kind=\"job\"}", 2.0)]);
    assert_eq!(ground.moved(), expected);
}
