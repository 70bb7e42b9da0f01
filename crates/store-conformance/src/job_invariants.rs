//! Invariants of jobs and queues, checked through the trait while no operation runs.

use crate::Fixture;
use crate::factory::{known, ok};
use leasehold_core::JobStatus;
use leasehold_store::Page;
use leasehold_store::job::{Job, JobFilter};
use leasehold_store::queue::JobCounts;
use std::collections::BTreeMap;

/// Reads all jobs, asserts every invariant and returns the jobs, newest first.
///
/// # Panics
/// When an invariant is violated.
pub async fn check(f: &Fixture) -> Vec<Job> {
    let jobs = f.all_jobs(&JobFilter::default(), 500).await;
    let mut listed: BTreeMap<String, JobCounts> = BTreeMap::new();
    for queue in ok(f.store.queue_list(&Page::first(1_000)).await) {
        listed.insert(queue.name, JobCounts::default());
    }
    for job in &jobs {
        row_makes_sense(job);
        let counts = listed.get_mut(&job.queue).expect("its queue is listed");
        *match known(&job.status) {
            JobStatus::Queued if job.run_at <= f.now() => &mut counts.ready,
            JobStatus::Queued => &mut counts.scheduled,
            JobStatus::Running => &mut counts.running,
            JobStatus::Completed => &mut counts.completed,
            JobStatus::Failed => &mut counts.failed,
        } += 1;
    }
    for (queue, listed) in listed {
        let counts = ok(f.store.queue_counts(&queue).await);
        assert_eq!(counts, listed, "counts of {queue} equal a full listing");
    }
    jobs
}

fn row_makes_sense(job: &Job) {
    let id = job.id;
    let running = job.status == JobStatus::Running;
    assert_eq!(job.claimed_by.is_some(), running, "{id} claimed_by");
    assert_eq!(job.claimed_at.is_some(), running, "{id} claimed_at");
    assert_eq!(job.lease_expires_at.is_some(), running, "{id} lease");
    let finished = known(&job.status).is_finished();
    assert_eq!(job.finished_at.is_some(), finished, "{id} finished_at");
    assert!(!finished || job.progress.is_none(), "{id} progress");
    let completed = job.status == JobStatus::Completed;
    assert!(completed || job.result.is_none(), "{id} result");
    assert!(!running || job.attempts > 0, "{id} has an attempt");
    assert!(job.attempts == 0 || job.token > 0, "{id} has a token");
    if job.status == JobStatus::Failed {
        assert!(job.last_error.is_some(), "{id} has an error");
    }
}
