//! Limits of running jobs, of a queue and of all queues: claims never exceed them, and they can change at any time.

use crate::Fixture;
use crate::factory::ok;
use crate::job_factory::{
    WORKER, completed, failed, finish_each, job_ids, job_with_max_attempts, new_job,
};
use leasehold_core::JobStatus;
use leasehold_core::job::{JobEnd, RetryMode};
use leasehold_store::job::{JobStart, NewJob};
use leasehold_store::queue::QueueChange;
use std::time::Duration;

fn other() -> NewJob {
    NewJob {
        queue: "other".into(),
        ..new_job()
    }
}

/// A queue's limit is exact, and a claim that it cuts short reports it.
pub async fn queue_limit_is_exact(f: Fixture) {
    f.set_queue_limit(Some(5)).await;
    let ids = f.enqueue_jobs(9).await;
    let first = f.claim_outcome(3).await;
    assert_eq!((first.jobs.len(), first.at_limit), (3, false));
    let second = f.claim_outcome(10).await;
    assert_eq!(
        (job_ids(&second.jobs), second.at_limit),
        (ids[3..5].to_vec(), true)
    );
    let none = f.claim_outcome(1).await;
    assert_eq!((none.jobs.len(), none.at_limit), (0, true));
    assert_eq!(f.job_counts().await.running, 5);
}

/// Without a limit no claim reports one.
pub async fn claim_without_a_limit_reports_none(f: Fixture) {
    f.enqueue_jobs(300).await;
    let all = f.claim_outcome(400).await;
    assert_eq!((all.jobs.len(), all.at_limit), (300, false));
    assert!(!f.claim_outcome(1).await.at_limit);
    assert_eq!(ok(f.store.job_limit().await), None);
}

/// A limit that is not reached is not reported.
pub async fn limit_that_is_not_reached_is_not_reported(f: Fixture) {
    f.set_queue_limit(Some(5)).await;
    ok(f.store
        .job_limit_set(Some(6), &leasehold_store::Actor::Local)
        .await);
    f.enqueue_jobs(2).await;
    let all = f.claim_outcome(4).await;
    assert_eq!((all.jobs.len(), all.at_limit), (2, false));
    assert!(!f.claim_outcome(2).await.at_limit);
}

/// Every end of a claim frees capacity: completed, failed, retried, snoozed, returned.
pub async fn every_end_frees_capacity(f: Fixture) {
    f.set_queue_limit(Some(1)).await;
    ok(f.store
        .job_limit_set(Some(1), &leasehold_store::Actor::Local)
        .await);
    for end in [
        completed(),
        failed(RetryMode::Never),
        failed(RetryMode::Policy),
        JobEnd::Snoozed(Duration::from_secs(60)),
        JobEnd::Returned,
    ] {
        f.enqueue_jobs(1).await;
        let job = f.claim_job().await;
        assert_eq!(f.claim_jobs(1).await, []);
        f.finish_job(&job, end).await;
    }
    assert_eq!(f.claim_jobs(10).await.len(), 1);
}

/// Partial capacity yields that many jobs, and each end frees exactly one.
pub async fn capacity_is_exact_per_job(f: Fixture) {
    f.set_queue_limit(Some(100)).await;
    f.enqueue_jobs(300).await;
    let jobs = f.claim_jobs(200).await;
    assert_eq!(jobs.len(), 100);
    f.finish_jobs(WORKER, &finish_each(&jobs[10..47], &completed()))
        .await;
    let more = f.claim_outcome(200).await;
    assert_eq!((more.jobs.len(), more.at_limit), (37, true));
    assert_eq!(f.job_counts().await.running, 100);
}

/// A lowered limit lets running jobs finish and yields nothing until fewer run.
pub async fn lowered_limit_yields_nothing_until_fewer_run(f: Fixture) {
    f.enqueue_jobs(10).await;
    let jobs = f.claim_jobs(5).await;
    f.set_queue_limit(Some(2)).await;
    for job in &jobs[..3] {
        let none = f.claim_outcome(5).await;
        assert_eq!((none.jobs.len(), none.at_limit), (0, true));
        assert_eq!(f.renew_jobs(WORKER, &[job.claim()]).await, [job.id]);
        f.finish_job(job, completed()).await;
    }
    assert_eq!(f.claim_jobs(5).await, []);
    f.finish_job(&jobs[3], completed()).await;
    assert_eq!(f.claim_jobs(5).await.len(), 1);
    f.set_queue_limit(Some(4)).await;
    assert_eq!(f.claim_jobs(5).await.len(), 2);
    f.set_queue_limit(None).await;
    assert_eq!(f.claim_jobs(5).await.len(), 2);
}

/// A limit of zero yields nothing.
pub async fn limit_of_zero_yields_nothing(f: Fixture) {
    f.enqueue_jobs(1).await;
    f.set_queue_limit(Some(0)).await;
    let none = f.claim_outcome(1).await;
    assert_eq!((none.jobs.len(), none.at_limit), (0, true));
    f.set_queue_limit(None).await;
    ok(f.store
        .job_limit_set(Some(0), &leasehold_store::Actor::Local)
        .await);
    let none = f.claim_outcome(1).await;
    assert_eq!((none.jobs.len(), none.at_limit), (0, true));
    ok(f.store
        .job_limit_set(None, &leasehold_store::Actor::Local)
        .await);
    assert_eq!(f.claim_jobs(1).await.len(), 1);
}

/// The global limit holds across all queues and is read back.
pub async fn global_limit_holds_across_queues(f: Fixture) {
    ok(f.store
        .job_limit_set(Some(4), &leasehold_store::Actor::Local)
        .await);
    assert_eq!(ok(f.store.job_limit().await), Some(4));
    f.enqueue_jobs(5).await;
    f.enqueue_new_jobs(&vec![other(); 5]).await;
    assert_eq!(f.claim_jobs(3).await.len(), 3);
    let there = f.claim_jobs_from("other", 3).await;
    assert_eq!((there.jobs.len(), there.at_limit), (1, true));
    let here = f.claim_outcome(1).await;
    assert_eq!((here.jobs.len(), here.at_limit), (0, true));
    f.finish_job(&there.jobs[0], completed()).await;
    assert_eq!(f.claim_jobs(3).await.len(), 1);
    ok(f.store
        .job_limit_set(Some(6), &leasehold_store::Actor::Local)
        .await);
    assert_eq!(f.claim_jobs_from("other", 9).await.jobs.len(), 2);
    ok(f.store
        .job_limit_set(None, &leasehold_store::Actor::Local)
        .await);
    assert_eq!(ok(f.store.job_limit().await), None);
    assert_eq!(f.claim_jobs_from("other", 9).await.jobs.len(), 2);
}

/// Of two limits the tighter counts.
pub async fn tighter_of_two_limits_counts(f: Fixture) {
    f.set_queue_limit(Some(3)).await;
    ok(f.store
        .job_limit_set(Some(5), &leasehold_store::Actor::Local)
        .await);
    f.enqueue_jobs(9).await;
    f.enqueue_new_jobs(&vec![other(); 9]).await;
    assert_eq!(f.claim_jobs(9).await.len(), 3);
    assert_eq!(f.claim_jobs_from("other", 9).await.jobs.len(), 2);
    f.set_queue_limit(Some(9)).await;
    let none = f.claim_outcome(9).await;
    assert_eq!((none.jobs.len(), none.at_limit), (0, true));
    ok(f.store
        .job_limit_set(Some(20), &leasehold_store::Actor::Local)
        .await);
    assert_eq!(f.claim_jobs(9).await.len(), 6);
}

/// An expired lease uses capacity until it is taken back, which a claim at the limit does itself.
pub async fn expired_lease_frees_capacity_for_a_claim(f: Fixture) {
    f.set_queue_limit(Some(2)).await;
    let ids = f.enqueue_jobs(4).await;
    f.claim_jobs(2).await;
    f.advance(15);
    assert_eq!(f.job_counts().await.running, 2);
    let claimed = f.claim_jobs_as("worker-2", 5).await;
    assert_eq!(job_ids(&claimed), ids[..2]);
    assert_eq!(f.job_counts().await.running, 2);
}

/// A lease that expired on the last attempt frees capacity too.
pub async fn exhausted_lease_frees_capacity_for_a_claim(f: Fixture) {
    f.set_queue_limit(Some(1)).await;
    let dead = f.enqueue_claimed_job(job_with_max_attempts(1)).await;
    let next = f.enqueue_jobs(1).await;
    f.advance(15);
    assert_eq!(job_ids(&f.claim_jobs(5).await), next);
    assert_eq!(f.job(dead.id).await.status, JobStatus::Failed);
}

/// Under the global limit a claim takes back expired leases of other queues, also of paused ones.
pub async fn expired_lease_of_another_queue_frees_global_capacity(f: Fixture) {
    ok(f.store
        .job_limit_set(Some(2), &leasehold_store::Actor::Local)
        .await);
    f.enqueue_new_jobs(&vec![other(); 2]).await;
    assert_eq!(f.claim_jobs_from("other", 2).await.jobs.len(), 2);
    let paused = QueueChange {
        paused: Some(true),
        ..QueueChange::default()
    };
    ok(f.store
        .queue_update("other", &paused, &leasehold_store::Actor::Local)
        .await);
    let ids = f.enqueue_jobs(3).await;
    assert_eq!(f.claim_jobs(1).await, []);
    f.advance(15);
    assert_eq!(job_ids(&f.claim_jobs(5).await), ids[..2]);
    let counts = ok(f.store.queue_counts("other").await);
    assert_eq!((counts.running, counts.ready), (0, 2));
}

/// A claim at the limit removes nothing from the line: the order is unchanged for the next claim.
pub async fn jobs_held_back_by_a_limit_keep_their_order(f: Fixture) {
    f.set_queue_limit(Some(1)).await;
    let later = NewJob {
        start: JobStart::In(Duration::from_secs(1)),
        ..new_job()
    };
    let mut ids = f.enqueue_new_jobs(&[later]).await;
    ids.extend(f.enqueue_jobs(3).await);
    f.advance(1);
    for id in ids {
        let job = f.claim_outcome(9).await.jobs.remove(0);
        assert_eq!(job.id, id);
        assert_eq!(f.claim_jobs(9).await, []);
        f.finish_job(&job, completed()).await;
    }
}
