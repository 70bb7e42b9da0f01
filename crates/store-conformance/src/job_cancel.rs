//! Cancelling jobs: queued jobs fail, running jobs are unchanged.

use crate::Fixture;
use crate::factory::ok;
use crate::job_factory::{WORKER, completed, failed, job_ids, new_job};
use leasehold_core::job::{JobEnd, RetryMode};
use leasehold_core::{JobId, JobStatus};
use leasehold_store::job::{JobCancelled, JobStart, NewJob};
use std::time::Duration;

async fn cancel(f: &Fixture, id: JobId) -> JobCancelled {
    ok(f.store.job_cancel(id).await)
}

/// A queued job fails with the error `cancelled`, without an attempt.
pub async fn queued_job_fails_at_once(f: Fixture) {
    let ids = f.enqueue_jobs(3).await;
    f.advance(2);
    assert_eq!(cancel(&f, ids[1]).await, JobCancelled::Cancelled);
    let job = f.job(ids[1]).await;
    assert_eq!(
        (job.status, job.attempts, job.token),
        (JobStatus::Failed.into(), 0, 0)
    );
    assert_eq!(job.last_error.as_deref(), Some("cancelled"));
    assert_eq!(job.finished_at, Some(f.now()));
    assert_eq!(job.claimed_by, None);
    assert_eq!(job_ids(&f.claim_jobs(5).await), [ids[0], ids[2]]);
    assert_eq!(f.job_counts().await.failed, 1);
}

/// So does a scheduled job, a job that awaits a retry, and a job whose lease expired.
pub async fn scheduled_or_retrying_job_fails_at_once(f: Fixture) {
    let later = NewJob {
        start: JobStart::In(Duration::from_secs(60)),
        ..new_job()
    };
    let scheduled = f.enqueue_job(later).await;
    let retried = f.enqueue_claimed_job(new_job()).await;
    f.finish_job(&retried, failed(RetryMode::After(Duration::from_secs(60))))
        .await;
    let given = f.enqueue_claimed_job(new_job()).await;
    f.finish_job(&given, JobEnd::Returned).await;
    let lost = {
        let id = f
            .enqueue_job(crate::job_factory::job_with_priority(3))
            .await;
        assert_eq!(f.claim_job().await.id, id);
        f.advance(15);
        f.requeue_expired_jobs().await;
        id
    };
    for (id, attempts) in [(scheduled, 0), (retried.id, 1), (given.id, 0), (lost, 1)] {
        assert_eq!(cancel(&f, id).await, JobCancelled::Cancelled);
        let job = f.job(id).await;
        assert_eq!(
            (job.status, job.attempts),
            (JobStatus::Failed.into(), attempts)
        );
        assert_eq!(job.last_error.as_deref(), Some("cancelled"));
    }
    f.advance(1_000);
    let none = f.claim_outcome(9).await;
    assert_eq!((none.jobs.len(), none.next_due_in), (0, None));
    assert_eq!(f.job(retried.id).await.token, retried.token);
}

/// A running job is unchanged.
pub async fn running_job_is_unchanged(f: Fixture) {
    let job = f.enqueue_claimed_job(new_job()).await;
    let before = f.job(job.id).await;
    assert_eq!(cancel(&f, job.id).await, JobCancelled::Running);
    assert_eq!(f.job(job.id).await, before);
    assert_eq!(f.renew_jobs(WORKER, &[job.claim()]).await, [job.id]);
}

/// A job that has ended, or is unknown, is reported as such and unchanged.
pub async fn ended_or_unknown_job_is_unchanged(f: Fixture) {
    let completed = f.enqueue_completed_job().await;
    let failed = f.enqueue_failed_job().await;
    let cancelled = f.enqueue_jobs(1).await[0];
    cancel(&f, cancelled).await;
    for id in [completed, failed, cancelled] {
        let before = f.job(id).await;
        f.advance(1);
        assert_eq!(cancel(&f, id).await, JobCancelled::Finished);
        assert_eq!(f.job(id).await, before);
    }
    assert_eq!(cancel(&f, JobId(987_654_321)).await, JobCancelled::NotFound);
}

/// If a claim and a cancellation race, either the worker has the job or it failed, never both.
pub async fn race_with_a_claim_has_one_winner(f: Fixture) {
    for _ in 0..20 {
        let ids = f.enqueue_jobs(6).await;
        let cancels = ids.iter().map(|id| {
            let (store, id) = (f.store.clone(), *id);
            tokio::spawn(async move { (id, ok(store.job_cancel(id).await)) })
        });
        let cancels: Vec<_> = cancels.collect();
        let mut claimed = f.claim_jobs(3).await;
        let mut cancelled = Vec::new();
        for outcome in futures::future::join_all(cancels).await {
            let (id, outcome) = outcome.expect("the cancellation did not panic");
            match outcome {
                JobCancelled::Cancelled => cancelled.push(id),
                JobCancelled::Running => {}
                JobCancelled::Finished | JobCancelled::OfGraph | JobCancelled::NotFound => {
                    panic!("{outcome:?}")
                }
            }
        }
        claimed.extend(f.claim_jobs(6).await);
        let mut all = job_ids(&claimed);
        assert!(all.iter().all(|id| !cancelled.contains(id)));
        all.extend(cancelled);
        all.sort_unstable();
        assert_eq!(all, ids);
        for job in claimed {
            f.finish_job(&job, completed()).await;
        }
    }
}
