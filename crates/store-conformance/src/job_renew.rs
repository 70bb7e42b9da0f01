//! Renewing leases and reporting progress: only by the owner, only in time.

use crate::Fixture;
use crate::factory::{LEASE, ok};
use crate::job_factory::{QUEUE, WORKER, completed, failed, job_ids, job_refs, new_job};
use leasehold_core::job::{JobEnd, JobRef, RetryMode};
use leasehold_core::{JobId, JsonText};
use std::time::Duration;

fn report(n: u32) -> JsonText {
    JsonText::from(&serde_json::json!({"done": n}))
}

/// A renewal extends the lease from now.
pub async fn extends_the_lease_from_now(f: Fixture) {
    let job = f.enqueue_claimed_job(new_job()).await;
    let claimed_at = f.now();
    for _ in 0..4 {
        f.advance(10);
        assert_eq!(f.renew_jobs(WORKER, &[job.claim()]).await, [job.id]);
        let kept = f.job(job.id).await;
        assert_eq!(kept.lease_expires_at, Some(f.now() + LEASE));
        assert_eq!(kept.claimed_at, Some(claimed_at));
        assert_eq!(kept.token, job.token);
        assert_eq!(f.requeue_expired_jobs().await, []);
    }
    f.advance(15);
    assert_eq!(f.requeue_expired_jobs().await.len(), 1);
}

/// A renewal with a shorter lease shortens it.
pub async fn can_shorten_the_lease(f: Fixture) {
    let jobs = {
        f.enqueue_jobs(3).await;
        f.claim_jobs(3).await
    };
    let short = Duration::from_secs(2);
    let one = [jobs[1].claim()];
    assert_eq!(f.renew_jobs_for(WORKER, &one, short).await, [jobs[1].id]);
    assert_eq!(
        f.job(jobs[1].id).await.lease_expires_at,
        Some(f.now() + short)
    );
    f.advance(2);
    assert!(f.renew_jobs(WORKER, &one).await.is_empty());
    let expired: Vec<JobId> = f
        .requeue_expired_jobs()
        .await
        .iter()
        .map(|e| e.claim.job)
        .collect();
    assert_eq!(expired, [jobs[1].id]);
}

/// Only the named jobs are renewed; the others of the same claim expire.
pub async fn renews_only_the_named_jobs(f: Fixture) {
    let ids = f.enqueue_jobs(100).await;
    let jobs = f.claim_jobs(100).await;
    f.advance(10);
    let every_third: Vec<JobRef> = job_refs(&jobs).into_iter().step_by(3).collect();
    let kept: Vec<JobId> = ids.iter().copied().step_by(3).collect();
    assert_eq!(f.renew_jobs(WORKER, &every_third).await, kept);
    f.advance(5);
    assert_eq!(f.renew_jobs(WORKER, &job_refs(&jobs)).await, kept);
    assert_eq!(f.requeue_expired_jobs().await.len(), 100 - kept.len());
    assert_eq!(f.requeue_expired_jobs().await, []);
    f.advance(14);
    assert_eq!(f.renew_jobs(WORKER, &job_refs(&jobs)).await, kept);
}

/// A renewal returns only the held jobs: no wrong worker, token or job, no ended and no queued job.
pub async fn returns_only_the_held_jobs(f: Fixture) {
    f.enqueue_jobs(5).await;
    let jobs = f.claim_jobs(4).await;
    f.finish_job(&jobs[1], completed()).await;
    f.finish_job(&jobs[2], failed(RetryMode::After(Duration::ZERO)))
        .await;
    let mut claims = job_refs(&jobs);
    claims.push(JobRef {
        job: JobId(jobs[3].id.0 + 1),
        token: jobs[3].token,
    });
    claims.push(JobRef {
        job: JobId(987_654_321),
        token: 1,
    });
    claims.push(JobRef {
        job: jobs[0].id,
        token: jobs[0].token + 1_000,
    });
    assert_eq!(
        f.renew_jobs(WORKER, &claims).await,
        [jobs[0].id, jobs[3].id]
    );
    assert_eq!(f.renew_jobs("worker-2", &claims).await, []);
    assert_eq!(f.renew_jobs(WORKER, &[]).await, []);
}

/// An expired lease cannot be renewed, even before it is taken back.
pub async fn expired_lease_cannot_be_renewed(f: Fixture) {
    let job = f.enqueue_claimed_job(new_job()).await;
    f.clock.advance(LEASE - Duration::from_micros(1));
    assert_eq!(
        f.renew_jobs_for(WORKER, &[job.claim()], Duration::from_secs(1))
            .await,
        [job.id]
    );
    f.advance(1);
    assert_eq!(f.renew_jobs(WORKER, &[job.claim()]).await, []);
    let again = f.claim_jobs_as("worker-2", 1).await;
    assert_eq!(job_ids(&again), [job.id]);
    assert_eq!(f.renew_jobs(WORKER, &[job.claim()]).await, []);
    assert_eq!(
        f.renew_jobs("worker-2", &[again[0].claim()]).await,
        [job.id]
    );
}

/// A new claim of the same worker does not renew its earlier claim.
pub async fn earlier_claim_of_the_same_worker_is_lost(f: Fixture) {
    let first = f.enqueue_claimed_job(new_job()).await;
    f.advance(15);
    let second = f.claim_job().await;
    assert_eq!(second.id, first.id);
    assert_eq!(f.renew_jobs(WORKER, &[first.claim()]).await, []);
    assert_eq!(f.renew_jobs(WORKER, &[second.claim()]).await, [second.id]);
}

/// One call renews many jobs of several claims.
pub async fn renews_many_in_one_call(f: Fixture) {
    f.enqueue_jobs(1_000).await;
    let mut jobs = Vec::new();
    for n in [1, 64, 65, 500, 370] {
        jobs.extend(f.claim_jobs(n).await);
    }
    f.advance(14);
    let mut claims = job_refs(&jobs);
    claims.reverse();
    assert_eq!(f.renew_jobs(WORKER, &claims).await, job_ids(&jobs));
    f.advance(14);
    assert_eq!(f.requeue_expired_jobs().await, []);
}

/// Only the holder reports progress, and the last report is kept.
pub async fn only_the_holder_reports_progress(f: Fixture) {
    let job = f.enqueue_claimed_job(new_job()).await;
    let tell = async |worker: &str, claim: JobRef, n: u32| {
        ok(f.store.job_progress(worker, claim, &report(n)).await)
    };
    assert!(tell(WORKER, job.claim(), 1).await);
    assert!(tell(WORKER, job.claim(), 2).await);
    assert!(!tell("worker-2", job.claim(), 3).await);
    let forged = JobRef {
        token: job.token + 1,
        ..job.claim()
    };
    assert!(!tell(WORKER, forged, 3).await);
    assert_eq!(f.job(job.id).await.progress, Some(report(2)));
    f.advance(15);
    assert!(!tell(WORKER, job.claim(), 3).await);
    f.requeue_expired_jobs().await;
    assert!(!tell(WORKER, job.claim(), 3).await);
    assert_eq!(f.job(job.id).await.progress, Some(report(2)));
}

/// Progress is kept through retries, snoozes and lost leases until the job ends.
pub async fn progress_is_kept_until_the_job_ends(f: Fixture) {
    let mut job = f.enqueue_claimed_job(new_job()).await;
    assert!(ok(f
        .store
        .job_progress(WORKER, job.claim(), &report(9))
        .await));
    for end in [
        failed(RetryMode::After(Duration::ZERO)),
        JobEnd::Snoozed(Duration::ZERO),
        JobEnd::Returned,
    ] {
        f.finish_job(&job, end).await;
        assert_eq!(f.job(job.id).await.progress, Some(report(9)));
        job = f.claim_job().await;
        assert_eq!(job.progress, Some(report(9)));
    }
    f.advance(15);
    job = f.claim_job().await;
    assert_eq!(job.progress, Some(report(9)));
    f.finish_job(&job, completed()).await;
    assert_eq!(f.job(job.id).await.progress, None);
    assert_eq!(ok(f.store.queue_counts(QUEUE).await).completed, 1);
}
