//! What a store promises about cancelling jobs: what waits fails, what a worker has is left alone.

use crate::Fixture;
use crate::factory::ok;
use crate::job_factory::{WORKER, completed, failed, job_ids, new_job};
use leasehold_core::job::{Again, JobEnd};
use leasehold_core::{JobId, JobStatus};
use leasehold_store::job::{JobCancelled, JobStart, NewJob};
use std::time::Duration;

async fn cancel(f: &Fixture, id: JobId) -> JobCancelled {
    ok(f.store.job_cancel(id).await)
}

/// A queued job fails with the error `cancelled`, and no attempt is counted.
pub async fn of_what_waits_is_at_once(f: Fixture) {
    let ids = f.put(3).await;
    f.advance(2);
    assert_eq!(cancel(&f, ids[1]).await, JobCancelled::Cancelled);
    let job = f.job(ids[1]).await;
    assert_eq!(
        (job.status, job.attempts, job.token),
        (JobStatus::Failed, 0, 0)
    );
    assert_eq!(job.last_error.as_deref(), Some("cancelled"));
    assert_eq!(job.finished_at, Some(f.now()));
    assert_eq!(job.claimed_by, None);
    assert_eq!(job_ids(&f.take(5).await), [ids[0], ids[2]]);
    assert_eq!(f.job_counts().await.failed, 1);
}

/// So does one that is scheduled, one that is to be tried again, and one that was taken back.
pub async fn of_what_waits_for_its_time_is_at_once(f: Fixture) {
    let later = NewJob {
        start: JobStart::In(Duration::from_secs(60)),
        ..new_job()
    };
    let scheduled = f.put_one(later).await;
    let retried = f.taken(new_job()).await;
    f.end(&retried, failed(Again::After(Duration::from_secs(60))))
        .await;
    let given = f.taken(new_job()).await;
    f.end(&given, JobEnd::GivenBack).await;
    let lost = {
        let id = f.put_one(crate::job_factory::urgent(3)).await;
        assert_eq!(f.take_one().await.id, id);
        f.advance(15);
        f.sweep().await;
        id
    };
    for (id, attempts) in [(scheduled, 0), (retried.id, 1), (given.id, 0), (lost, 1)] {
        assert_eq!(cancel(&f, id).await, JobCancelled::Cancelled);
        let job = f.job(id).await;
        assert_eq!((job.status, job.attempts), (JobStatus::Failed, attempts));
        assert_eq!(job.last_error.as_deref(), Some("cancelled"));
    }
    f.advance(1_000);
    let none = f.look(9).await;
    assert_eq!((none.jobs.len(), none.next_due_in), (0, None));
    assert_eq!(f.job(retried.id).await.token, retried.token);
}

/// A running job is left alone.
pub async fn of_what_runs_changes_nothing(f: Fixture) {
    let job = f.taken(new_job()).await;
    let before = f.job(job.id).await;
    assert_eq!(cancel(&f, job.id).await, JobCancelled::Running);
    assert_eq!(f.job(job.id).await, before);
    assert_eq!(f.keep(WORKER, &[job.claim()]).await, [job.id]);
}

/// What has ended, or never was, is told so and stays as it is.
pub async fn of_what_has_ended_changes_nothing(f: Fixture) {
    let completed = f.job_completed().await;
    let failed = f.job_failed().await;
    let cancelled = f.put(1).await[0];
    cancel(&f, cancelled).await;
    for id in [completed, failed, cancelled] {
        let before = f.job(id).await;
        f.advance(1);
        assert_eq!(cancel(&f, id).await, JobCancelled::Finished);
        assert_eq!(f.job(id).await, before);
    }
    assert_eq!(cancel(&f, JobId(987_654_321)).await, JobCancelled::NotFound);
}

/// A claim and a cancellation at once: either the worker has it or it is failed, never both.
pub async fn that_races_a_claim_is_either(f: Fixture) {
    for _ in 0..20 {
        let ids = f.put(6).await;
        let cancels = ids.iter().map(|id| {
            let (store, id) = (f.store.clone(), *id);
            tokio::spawn(async move { (id, ok(store.job_cancel(id).await)) })
        });
        let cancels: Vec<_> = cancels.collect();
        let mut claimed = f.take(3).await;
        let mut cancelled = Vec::new();
        for outcome in futures::future::join_all(cancels).await {
            let (id, outcome) = outcome.expect("no cancellation panicked");
            match outcome {
                JobCancelled::Cancelled => cancelled.push(id),
                JobCancelled::Running => {}
                JobCancelled::Finished | JobCancelled::OfGraph | JobCancelled::NotFound => {
                    panic!("{outcome:?}")
                }
            }
        }
        claimed.extend(f.take(6).await);
        let mut all = job_ids(&claimed);
        assert!(all.iter().all(|id| !cancelled.contains(id)));
        all.extend(cancelled);
        all.sort_unstable();
        assert_eq!(all, ids);
        for job in claimed {
            f.end(&job, completed()).await;
        }
    }
}
