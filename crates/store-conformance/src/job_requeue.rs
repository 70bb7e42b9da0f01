//! Expired leases: taken back by a sweep or a claim, once, and counted as attempts.

use crate::Fixture;
use crate::factory::{LEASE, ok};
use crate::job_factory::{
    QUEUE, WORKER, completed, job_claim, job_ids, job_refs, job_with_max_attempts,
    job_with_priority, new_job,
};
use leasehold_core::job::{JobClaim, JobFinished};
use leasehold_core::{JobId, JobStatus};
use leasehold_store::job::{ExpiredJob, NewJob};
use leasehold_store::queue::QueueChange;
use std::collections::BTreeSet;
use std::time::Duration;

/// A sweep requeues expired jobs at once and reports them.
pub async fn sweep_requeues_expired_jobs_at_once(f: Fixture) {
    let job = f.enqueue_claimed_job(new_job()).await;
    f.clock.advance(LEASE - Duration::from_micros(1));
    assert_eq!(f.requeue_expired_jobs().await, []);
    f.clock.advance(Duration::from_micros(1));
    let expected = ExpiredJob {
        claim: job.claim(),
        queue: QUEUE.into(),
        worker: WORKER.into(),
        status: JobStatus::Queued,
    };
    assert_eq!(f.requeue_expired_jobs().await, [expected]);
    let kept = f.job(job.id).await;
    assert_eq!(
        (kept.status, kept.run_at),
        (JobStatus::Queued.into(), f.now())
    );
    assert_eq!((kept.claimed_by, kept.claimed_at), (None, None));
    assert_eq!(kept.lease_expires_at, None);
    assert_eq!((kept.attempts, kept.token), (1, job.token));
    let error = format!("the lease of {WORKER} expired");
    assert_eq!(kept.last_error, Some(error.clone()));
    let again = f.claim_jobs_as("worker-2", 1).await.remove(0);
    assert_eq!((again.id, again.attempt), (job.id, 2));
    assert_eq!(again.last_error, Some(error));
    assert!(again.token > job.token);
}

/// A lease that expires on the last attempt fails the job, so a job that kills its workers ends.
pub async fn expiry_on_the_last_attempt_fails_the_job(f: Fixture) {
    let id = f.enqueue_job(job_with_max_attempts(2)).await;
    f.claim_job().await;
    f.advance(15);
    let second = f.claim_jobs_as("worker-2", 1).await.remove(0);
    assert_eq!((second.id, second.attempt), (id, 2));
    f.advance(15);
    let expired = f.requeue_expired_jobs().await;
    assert_eq!(expired.len(), 1);
    assert_eq!(expired[0].status, JobStatus::Failed);
    assert_eq!(expired[0].worker, "worker-2");
    let kept = f.job(id).await;
    assert_eq!((kept.status, kept.attempts), (JobStatus::Failed.into(), 2));
    assert_eq!(kept.finished_at, Some(f.now()));
    assert_eq!(
        kept.last_error.as_deref(),
        Some("the lease of worker-2 expired")
    );
    assert_eq!((kept.claimed_by, kept.lease_expires_at), (None, None));
    assert_eq!(f.claim_jobs(5).await, []);
    assert_eq!(f.requeue_expired_jobs().await, []);
}

/// A claim that would return fewer jobs than requested takes back expired leases itself.
pub async fn claim_takes_back_expired_leases(f: Fixture) {
    let first = f.enqueue_jobs(3).await;
    f.claim_jobs(3).await;
    f.advance(15);
    f.enqueue_job(job_with_max_attempts(1)).await;
    let claimed = f.claim_jobs_as("worker-2", 10).await;
    assert_eq!(claimed.len(), 4);
    assert_eq!(job_ids(&claimed)[..3], first);
    assert_eq!(f.requeue_expired_jobs().await, []);
}

/// A claim fails jobs whose lease expired on the last attempt.
pub async fn claim_fails_exhausted_jobs(f: Fixture) {
    let job = f.enqueue_claimed_job(job_with_max_attempts(1)).await;
    f.advance(15);
    assert_eq!(f.claim_jobs(1).await, []);
    assert_eq!(f.job(job.id).await.status, JobStatus::Failed);
    assert_eq!(f.requeue_expired_jobs().await, []);
}

/// A sweep takes at most its limit; repeated sweeps take all, then nothing.
pub async fn sweep_takes_at_most_its_limit_and_is_idempotent(f: Fixture) {
    let ids: BTreeSet<JobId> = f.enqueue_jobs(150).await.into_iter().collect();
    f.claim_jobs(100).await;
    f.claim_jobs_as("worker-2", 50).await;
    f.advance(15);
    let mut swept = Vec::new();
    for expected in [40, 40, 40, 30, 0, 0] {
        let expired = ok(f.store.job_requeue_expired(40).await);
        assert_eq!(expired.len(), expected);
        swept.extend(expired.iter().map(|e| e.claim.job));
    }
    assert_eq!(swept.len(), 150);
    assert_eq!(swept.into_iter().collect::<BTreeSet<_>>(), ids);
    assert_eq!(f.job_counts().await.ready, 150);
}

/// A sweep with an oversized limit is capped and ends.
pub async fn sweep_is_capped_at_the_maximum(f: Fixture) {
    f.enqueue_jobs(300).await;
    f.claim_jobs(300).await;
    f.advance(15);
    let mut swept = 0;
    loop {
        let n = ok(f.store.job_requeue_expired(u32::MAX).await).len();
        if n == 0 {
            break;
        }
        swept += n;
    }
    assert_eq!(swept, 300);
}

/// Of jobs claimed together, those that ended, were renewed or returned are not taken back.
pub async fn takes_only_expired_leases(f: Fixture) {
    let ids = f.enqueue_jobs(6).await;
    let jobs = f.claim_jobs(6).await;
    f.finish_job(&jobs[0], completed()).await;
    f.finish_job(&jobs[1], leasehold_core::job::JobEnd::Returned)
        .await;
    f.advance(10);
    f.renew_jobs(WORKER, &job_refs(&jobs[2..4])).await;
    f.advance(5);
    let expired: Vec<JobId> = f
        .requeue_expired_jobs()
        .await
        .iter()
        .map(|e| e.claim.job)
        .collect();
    assert_eq!(expired, ids[4..]);
    let counts = f.job_counts().await;
    assert_eq!((counts.ready, counts.running, counts.completed), (3, 2, 1));
    assert_eq!(f.renew_jobs(WORKER, &job_refs(&jobs)).await, ids[2..4]);
    f.advance(15);
    let expired: Vec<JobId> = f
        .requeue_expired_jobs()
        .await
        .iter()
        .map(|e| e.claim.job)
        .collect();
    assert_eq!(expired, ids[2..4]);
}

/// Leases of one claim with different ends expire individually.
pub async fn leases_of_one_claim_expire_individually(f: Fixture) {
    let ids = f.enqueue_jobs(5).await;
    let jobs = f.claim_jobs(5).await;
    for (n, job) in jobs.iter().enumerate() {
        let lease = Duration::from_secs(10 * (n as u64 + 1));
        f.renew_jobs_for(WORKER, &[job.claim()], lease).await;
    }
    for (n, id) in ids.iter().enumerate() {
        f.advance(9);
        assert_eq!(f.requeue_expired_jobs().await, []);
        assert_eq!(
            f.renew_jobs_for(WORKER, &job_refs(&jobs[..n]), LEASE).await,
            []
        );
        f.advance(1);
        let expired = f.requeue_expired_jobs().await;
        assert_eq!(expired.len(), 1, "{n}");
        assert_eq!(expired[0].claim.job, *id);
    }
    assert_eq!(f.job_counts().await.ready, 5);
}

/// A job that was taken back keeps its position by priority and age.
pub async fn requeued_job_keeps_its_position(f: Fixture) {
    let low = f.enqueue_job(new_job()).await;
    let high = f.enqueue_job(job_with_priority(5)).await;
    f.claim_jobs(2).await;
    f.advance(15);
    let younger = f.enqueue_new_jobs(&[job_with_priority(5), new_job()]).await;
    assert_eq!(f.requeue_expired_jobs().await.len(), 2);
    let line = job_ids(&f.claim_jobs(10).await);
    assert_eq!(line, [high, younger[0], low, younger[1]]);
}

/// A sweep covers every queue, paused ones included; a claim of another queue may take such jobs back but never returns them.
pub async fn every_queue_is_swept(f: Fixture) {
    let other = NewJob {
        queue: "other".into(),
        ..new_job()
    };
    let there = f.enqueue_job(other).await;
    f.claim_jobs_from("other", 1).await;
    let here = f.enqueue_claimed_job(new_job()).await;
    let paused = QueueChange {
        paused: Some(true),
        ..QueueChange::default()
    };
    ok(f.store
        .queue_update("other", &paused, &leasehold_store::Actor::Local)
        .await);
    f.advance(15);
    assert_eq!(job_ids(&f.claim_jobs(5).await), [here.id]);
    f.advance(15);
    let expired: BTreeSet<JobId> = f
        .requeue_expired_jobs()
        .await
        .iter()
        .map(|e| e.claim.job)
        .collect();
    assert!(expired.contains(&here.id));
    assert_eq!(f.job(there).await.status, JobStatus::Queued);
}

/// Concurrent sweeps and claims take each expired lease back once.
pub async fn concurrent_sweeps_and_claims_take_each_back_once(f: Fixture) {
    let ids: BTreeSet<JobId> = f.enqueue_jobs(120).await.into_iter().collect();
    for n in 0..4 {
        f.claim_jobs_as(&format!("dead-{n}"), 30).await;
    }
    f.advance(15);
    let sweeps = (0..8).map(|_| {
        let store = f.store.clone();
        tokio::spawn(async move {
            let mut swept = Vec::new();
            loop {
                let expired = ok(store.job_requeue_expired(7).await);
                if expired.is_empty() {
                    return swept;
                }
                swept.extend(expired.into_iter().map(|e| e.claim.job));
            }
        })
    });
    let claims = (0..4).map(|n| {
        let store = f.store.clone();
        let claim = JobClaim {
            lease: Some(Duration::from_secs(60)),
            ..job_claim(&format!("alive-{n}"), 200)
        };
        tokio::spawn(async move { job_ids(&ok(store.job_claim(&claim).await).jobs) })
    });
    let (sweeps, claims): (Vec<_>, Vec<_>) = (sweeps.collect(), claims.collect());
    let mut swept = Vec::new();
    for sweep in sweeps {
        swept.extend(sweep.await.expect("the sweep did not panic"));
    }
    let mut claimed = Vec::new();
    for claim in claims {
        claimed.extend(claim.await.expect("the claim did not panic"));
    }
    let distinct: BTreeSet<JobId> = swept.iter().copied().collect();
    assert_eq!(distinct.len(), swept.len(), "no lease is taken back twice");
    claimed.extend(job_ids(&f.claim_jobs_as("last", 500).await));
    assert_eq!(claimed.len(), 120, "each job is claimed once");
    assert_eq!(claimed.into_iter().collect::<BTreeSet<_>>(), ids);
    for job in ids {
        assert_eq!(f.job(job).await.attempts, 2);
    }
}

/// Of a slow worker and the one that took over, exactly one finishes the job.
pub async fn slow_worker_cannot_finish_a_job_that_was_taken_over(f: Fixture) {
    let slow = f.enqueue_claimed_job(new_job()).await;
    f.advance(15);
    let taken = f.claim_jobs_as("worker-2", 1).await.remove(0);
    let (late, right) = tokio::join!(
        f.finish_job(&slow, completed()),
        f.finish_job_as("worker-2", taken.claim(), completed())
    );
    assert_eq!(
        (late, right),
        (JobFinished::LeaseLost, JobFinished::Completed)
    );
}
