//! Deleting jobs that have ended.

use crate::Fixture;
use crate::factory::ok;
use crate::job_factory::{completed, job_with_dedup_key, new_job};
use leasehold_core::JobId;
use leasehold_store::job::{JobFilter, JobPrune, JobStart, JobsPruned, NewJob};
use std::time::Duration;

fn everything(f: &Fixture, limit: u32) -> JobPrune {
    JobPrune {
        completed_before: Some(f.now()),
        failed_before: Some(f.now()),
        limit,
    }
}

async fn left(f: &Fixture) -> Vec<JobId> {
    let jobs = f.all_jobs(&JobFilter::default(), 100).await;
    jobs.iter().rev().map(|job| job.id).collect()
}

/// Completed and failed jobs have separate cutoffs; a job that ended at the cutoff or later stays.
pub async fn deletes_only_jobs_that_ended_before_the_cutoff(f: Fixture) {
    let old = [
        f.enqueue_completed_job().await,
        f.enqueue_failed_job().await,
    ];
    f.advance(10);
    let moment = f.now();
    let new = [
        f.enqueue_completed_job().await,
        f.enqueue_failed_job().await,
    ];
    f.advance(10);
    let keep = JobPrune {
        limit: 10,
        ..JobPrune::default()
    };
    assert_eq!(ok(f.store.job_prune(&keep).await), JobsPruned::default());
    let completed = JobPrune {
        completed_before: Some(moment),
        ..keep
    };
    assert_eq!(ok(f.store.job_prune(&completed).await).jobs, 1);
    assert_eq!(left(&f).await, [old[1], new[0], new[1]]);
    let failed = JobPrune {
        failed_before: Some(moment),
        ..keep
    };
    assert_eq!(ok(f.store.job_prune(&failed).await).jobs, 1);
    assert_eq!(left(&f).await, new);
    assert_eq!(ok(f.store.job_get(old[0]).await), None);
    let counts = f.job_counts().await;
    assert_eq!((counts.completed, counts.failed), (1, 1));
}

/// Open jobs stay, however old.
pub async fn keeps_open_jobs(f: Fixture) {
    f.enqueue_jobs(3).await;
    let running = f.claim_jobs(1).await;
    let later = NewJob {
        start: JobStart::In(Duration::from_secs(1_000_000_000)),
        ..new_job()
    };
    f.enqueue_job(later).await;
    f.advance(365 * 24 * 3600);
    let before = f.all_jobs(&JobFilter::default(), 100).await;
    let none = ok(f.store.job_prune(&everything(&f, 100)).await);
    assert_eq!(none, JobsPruned::default());
    assert_eq!(f.all_jobs(&JobFilter::default(), 100).await, before);
    assert_eq!(running.len(), 1);
}

/// A call deletes the oldest first, at most `limit`; repeated calls delete all.
pub async fn deletes_oldest_first_up_to_the_limit(f: Fixture) {
    f.enqueue_jobs(5).await;
    let jobs = f.claim_jobs(5).await;
    let mut ended = Vec::new();
    for job in &jobs {
        f.finish_job(job, completed()).await;
        ended.push(job.id);
        f.advance(1);
    }
    for expected in [2, 2, 1, 0] {
        let pruned = ok(f.store.job_prune(&everything(&f, 2)).await);
        assert_eq!(pruned.jobs, expected);
        ended.drain(..expected as usize);
        let mut rest = ended.clone();
        rest.sort_unstable();
        assert_eq!(left(&f).await, rest);
    }
}

/// Repeated calls with an oversized limit delete everything and leave the queue working.
pub async fn deletes_everything_over_repeated_calls(f: Fixture) {
    f.enqueue_jobs(300).await;
    let jobs = f.claim_jobs(300).await;
    let ends = crate::job_factory::finish_each(&jobs, &completed());
    f.finish_jobs(crate::job_factory::WORKER, &ends).await;
    f.advance(1);
    let mut pruned = 0;
    loop {
        let some = ok(f.store.job_prune(&everything(&f, u32::MAX)).await).jobs;
        if some == 0 {
            break;
        }
        pruned += some;
    }
    assert_eq!(pruned, 300);
    let next = f.enqueue_jobs(2).await;
    assert!(next[0] > jobs[299].id, "ids are not reused");
    assert_eq!(crate::job_factory::job_ids(&f.claim_jobs(5).await), next);
}

/// Keys with expired windows are deleted and counted, also of open jobs; other keys stay.
pub async fn deletes_keys_with_expired_windows(f: Fixture) {
    let new = [
        job_with_dedup_key("a", Some(10)),
        job_with_dedup_key("b", Some(11)),
        job_with_dedup_key("c", None),
        job_with_dedup_key("d", Some(1)),
    ];
    let ids = f.enqueue_new_jobs(&new).await;
    f.advance(10);
    let pruned = ok(f.store.job_prune(&everything(&f, 10)).await);
    assert_eq!(pruned, JobsPruned { jobs: 0, keys: 2 });
    let mut keys = Vec::new();
    for id in ids {
        keys.push(f.job(id).await.dedup_key);
    }
    assert_eq!(keys, [None, Some("b".into()), Some("c".into()), None]);
    let again = ok(f.store.job_prune(&everything(&f, 10)).await);
    assert_eq!(again, JobsPruned::default());
    let answers = f.try_enqueue_jobs(&new).await;
    let existing: Vec<bool> = answers.iter().map(|a| a.existing).collect();
    assert_eq!(existing, [false, true, true, false]);
}

/// Pruning does not disturb concurrent claims, finishes and enqueues.
pub async fn does_not_disturb_concurrent_operations(f: Fixture) {
    for _ in 0..30 {
        f.enqueue_completed_job().await;
    }
    f.advance(1);
    let (prune, store) = (everything(&f, 3), f.store.clone());
    let pruner = tokio::spawn(async move {
        let mut pruned = 0;
        while pruned < 30 {
            pruned += ok(store.job_prune(&prune).await).jobs;
        }
    });
    for _ in 0..20 {
        f.enqueue_completed_job().await;
    }
    pruner.await.expect("the pruner did not panic");
    assert_eq!(f.job_counts().await.completed, 20);
}
