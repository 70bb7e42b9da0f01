//! Reading jobs.

use crate::Fixture;
use crate::factory::ok;
use crate::job_factory::{QUEUE, completed, failed, new_job};
use leasehold_core::job::{JobEnd, RetryMode};
use leasehold_core::limits::PAGE_MAX;
use leasehold_core::{JobId, JobStatus};
use leasehold_store::Page;
use leasehold_store::job::{Job, JobFilter, JobStart, NewJob};
use std::time::Duration;

/// Creates jobs in each status in two queues; returns their ids, oldest first.
async fn some_of_each(f: &Fixture) -> Vec<JobId> {
    let other = NewJob {
        queue: "other".into(),
        ..new_job()
    };
    let later = NewJob {
        start: JobStart::In(Duration::from_secs(60)),
        ..new_job()
    };
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.extend(f.enqueue_jobs(5).await);
        let jobs = f.claim_jobs(5).await;
        f.finish_job(&jobs[0], completed()).await;
        f.finish_job(&jobs[1], failed(RetryMode::Never)).await;
        f.finish_job(&jobs[2], JobEnd::Snoozed(Duration::from_secs(60)))
            .await;
        ids.extend(f.enqueue_new_jobs(&[other.clone(), later.clone()]).await);
        f.advance(1);
    }
    ids
}

/// The list has every job, newest first, as `job_get` returns it, in pages without gaps or repeats.
pub async fn lists_every_job_newest_first(f: Fixture) {
    let mut ids = some_of_each(&f).await;
    ids.reverse();
    for page in [1, 2, 7, 100] {
        let jobs = f.all_jobs(&JobFilter::default(), page).await;
        let listed: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
        assert_eq!(listed, ids);
        for job in jobs {
            assert_eq!(f.job(job.id).await, job);
        }
    }
}

/// Filters by queue and status, alone and combined, return exactly the matching jobs.
pub async fn filters_return_exactly_the_matching_jobs(f: Fixture) {
    some_of_each(&f).await;
    let all = f.all_jobs(&JobFilter::default(), 100).await;
    let statuses = [None].into_iter().chain(JobStatus::ALL.map(Some));
    for status in statuses {
        for queue in [None, Some(QUEUE), Some("other"), Some("unknown")] {
            let filter = JobFilter {
                queue: queue.map(str::to_owned),
                status,
            };
            let fits = |job: &&Job| {
                status.is_none_or(|status| job.status == status)
                    && queue.is_none_or(|queue| job.queue == queue)
            };
            let expected: Vec<Job> = all.iter().filter(fits).cloned().collect();
            assert_eq!(f.all_jobs(&filter, 2).await, expected, "{filter:?}");
            assert_eq!(f.all_jobs(&filter, 100).await, expected, "{filter:?}");
        }
    }
}

/// A page starts after its key, whether or not that job exists.
pub async fn page_starts_after_its_key(f: Fixture) {
    let ids = f.enqueue_jobs(3).await;
    let all = JobFilter::default();
    let page = ok(f.store.job_list(&all, Page::after(ids[2], 10)).await);
    let listed: Vec<JobId> = page.iter().map(|job| job.id).collect();
    assert_eq!(listed, [ids[1], ids[0]]);
    let beyond = Page::after(JobId(i64::MAX), 10);
    assert_eq!(ok(f.store.job_list(&all, beyond).await).len(), 3);
    let before = Page::after(JobId(0), 10);
    assert_eq!(ok(f.store.job_list(&all, before).await), []);
}

/// An oversized page is capped at the maximum.
pub async fn page_is_capped_at_the_maximum(f: Fixture) {
    f.enqueue_jobs(1_100).await;
    let all = JobFilter::default();
    let page = ok(f.store.job_list(&all, Page::first(u32::MAX)).await);
    assert_eq!(page.len(), PAGE_MAX as usize);
}

/// An unknown job is none.
pub async fn unknown_job_is_none(f: Fixture) {
    f.enqueue_jobs(1).await;
    assert_eq!(ok(f.store.job_get(JobId(987_654_321)).await), None);
    assert_eq!(ok(f.store.job_get(JobId(-1)).await), None);
}
