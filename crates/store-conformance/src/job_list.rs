//! What a store promises about reading jobs.

use crate::Fixture;
use crate::factory::ok;
use crate::job_factory::{QUEUE, completed, failed, new_job};
use leasehold_core::job::{Again, JobEnd};
use leasehold_core::limits::PAGE_MAX;
use leasehold_core::{JobId, JobStatus};
use leasehold_store::Page;
use leasehold_store::job::{Job, JobFilter, JobStart, NewJob};
use std::time::Duration;

/// Jobs in each status, of two queues; their ids, oldest first.
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
        ids.extend(f.put(5).await);
        let jobs = f.take(5).await;
        f.end(&jobs[0], completed()).await;
        f.end(&jobs[1], failed(Again::Never)).await;
        f.end(&jobs[2], JobEnd::Snoozed(Duration::from_secs(60)))
            .await;
        ids.extend(f.put_all(&[other.clone(), later.clone()]).await);
        f.advance(1);
    }
    ids
}

/// Everything, newest first, each as it is read alone; in pages that miss and repeat nothing.
pub async fn has_everything_newest_first(f: Fixture) {
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

/// Filters by queue and status, alone and together, pass exactly what fits.
pub async fn filters_pass_what_fits(f: Fixture) {
    some_of_each(&f).await;
    let all = f.all_jobs(&JobFilter::default(), 100).await;
    let statuses = [None].into_iter().chain(JobStatus::ALL.map(Some));
    for status in statuses {
        for queue in [None, Some(QUEUE), Some("other"), Some("nobody's")] {
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

/// A page begins after its key, whether or not that job is there.
pub async fn a_page_begins_after_its_key(f: Fixture) {
    let ids = f.put(3).await;
    let all = JobFilter::default();
    let page = ok(f.store.job_list(&all, Page::after(ids[2], 10)).await);
    let listed: Vec<JobId> = page.iter().map(|job| job.id).collect();
    assert_eq!(listed, [ids[1], ids[0]]);
    let beyond = Page::after(JobId(i64::MAX), 10);
    assert_eq!(ok(f.store.job_list(&all, beyond).await).len(), 3);
    let before = Page::after(JobId(0), 10);
    assert_eq!(ok(f.store.job_list(&all, before).await), []);
}

/// A page of everything holds what one may.
pub async fn a_page_holds_no_more_than_one_may(f: Fixture) {
    f.put(1_100).await;
    let all = JobFilter::default();
    let page = ok(f.store.job_list(&all, Page::first(u32::MAX)).await);
    assert_eq!(page.len(), PAGE_MAX as usize);
}

/// An unknown job is none.
pub async fn an_unknown_job_is_none(f: Fixture) {
    f.put(1).await;
    assert_eq!(ok(f.store.job_get(JobId(987_654_321)).await), None);
    assert_eq!(ok(f.store.job_get(JobId(-1)).await), None);
}
