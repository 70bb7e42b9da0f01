//! What a store promises about deleting jobs that have ended.

use crate::Fixture;
use crate::factory::ok;
use crate::job_factory::{completed, keyed, new_job};
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

/// Completed and failed ones have ages of their own; what ended at that very moment or later stays.
pub async fn takes_only_what_ended_before(f: Fixture) {
    let old = [f.job_completed().await, f.job_failed().await];
    f.advance(10);
    let moment = f.now();
    let new = [f.job_completed().await, f.job_failed().await];
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

/// What has not ended stays, however old.
pub async fn leaves_what_has_not_ended(f: Fixture) {
    f.put(3).await;
    let running = f.take(1).await;
    let later = NewJob {
        start: JobStart::In(Duration::from_secs(1_000_000_000)),
        ..new_job()
    };
    f.put_one(later).await;
    f.advance(365 * 24 * 3600);
    let before = f.all_jobs(&JobFilter::default(), 100).await;
    let none = ok(f.store.job_prune(&everything(&f, 100)).await);
    assert_eq!(none, JobsPruned::default());
    assert_eq!(f.all_jobs(&JobFilter::default(), 100).await, before);
    assert_eq!(running.len(), 1);
}

/// Oldest first, at most `limit` a call; called again while it finds something, it takes all.
pub async fn takes_the_oldest_first_and_at_most_its_limit(f: Fixture) {
    f.put(5).await;
    let jobs = f.take(5).await;
    let mut ended = Vec::new();
    for job in &jobs {
        f.end(job, completed()).await;
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

/// Asked for everything it ends, and leaves a queue that works as before.
pub async fn of_everything_ends(f: Fixture) {
    f.put(300).await;
    let jobs = f.take(300).await;
    let ends = crate::job_factory::all_end(&jobs, &completed());
    f.end_all(crate::job_factory::WORKER, &ends).await;
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
    let next = f.put(2).await;
    assert!(next[0] > jobs[299].id, "ids are not given twice");
    assert_eq!(crate::job_factory::job_ids(&f.take(5).await), next);
}

/// Keys whose window has passed are deleted and counted, of open jobs too; others hold on.
pub async fn deletes_keys_whose_window_has_passed(f: Fixture) {
    let new = [
        keyed("a", Some(10)),
        keyed("b", Some(11)),
        keyed("c", None),
        keyed("d", Some(1)),
    ];
    let ids = f.put_all(&new).await;
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
    let answers = f.offer(&new).await;
    let existing: Vec<bool> = answers.iter().map(|a| a.existing).collect();
    assert_eq!(existing, [false, true, true, false]);
}

/// Pruning beside claims, ends and enqueues disturbs none of them.
pub async fn disturbs_nobody_at_work(f: Fixture) {
    for _ in 0..30 {
        f.job_completed().await;
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
        f.job_completed().await;
    }
    pruner.await.expect("the pruner did not panic");
    assert_eq!(f.job_counts().await.completed, 20);
}
