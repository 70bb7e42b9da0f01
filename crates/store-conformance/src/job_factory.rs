//! Short words for what cases about jobs need again and again: put jobs in, take them, end them. Panics where a store fails; judges nothing.

use crate::Fixture;
use crate::factory::{LEASE, ok};
use leasehold_core::job::{
    Again, ClaimedJob, JobClaim, JobEnd, JobFinish, JobFinished, JobRef, JobsClaimed,
};
use leasehold_core::{JobId, JsonText};
use leasehold_store::Page;
use leasehold_store::job::{Dedup, EnqueuedJob, ExpiredJob, Job, JobFilter, JobsFinished, NewJob};
use leasehold_store::queue::{JobCounts, Queue, QueueChange};
use serde_json::json;
use std::time::Duration;

/// The queue that cases use, unless they need another.
pub const QUEUE: &str = "mail";
/// Who claims jobs, unless a case says otherwise.
pub const WORKER: &str = "worker-1";

/// A job with ordinary options.
pub fn new_job() -> NewJob {
    NewJob::new(QUEUE, "send", payload(7))
}

/// A payload that says which.
pub fn payload(n: u32) -> JsonText {
    JsonText::from(&json!({"to": n}))
}

/// An ordinary job with a priority.
pub fn urgent(priority: i16) -> NewJob {
    NewJob {
        priority,
        ..new_job()
    }
}

/// An ordinary job with a deduplication key, which holds for so many seconds or until the job has ended.
pub fn keyed(key: &str, window_seconds: Option<u64>) -> NewJob {
    NewJob {
        dedup: Some(Dedup {
            key: key.into(),
            window: window_seconds.map(Duration::from_secs),
        }),
        ..new_job()
    }
}

/// An ordinary job that is tried so often.
pub fn tried(max_attempts: u32) -> NewJob {
    NewJob {
        max_attempts: Some(max_attempts),
        ..new_job()
    }
}

/// The ids of what was claimed, in order.
pub fn job_ids(claimed: &[ClaimedJob]) -> Vec<JobId> {
    claimed.iter().map(|job| job.id).collect()
}

/// The claims themselves, in order.
pub fn job_refs(claimed: &[ClaimedJob]) -> Vec<JobRef> {
    claimed.iter().map(ClaimedJob::claim).collect()
}

/// The work is done, and came to nothing worth keeping.
pub fn completed() -> JobEnd {
    JobEnd::Completed { result: None }
}

/// The work failed.
pub fn failed(again: Again) -> JobEnd {
    JobEnd::Failed {
        error: "it broke".into(),
        again,
    }
}

/// One end for each of these claims.
pub fn all_end(claimed: &[ClaimedJob], end: &JobEnd) -> Vec<JobFinish> {
    let finish = |claim| JobFinish {
        claim,
        end: end.clone(),
    };
    job_refs(claimed).into_iter().map(finish).collect()
}

/// A claim of up to `max` jobs of [`QUEUE`].
pub fn job_claim(worker: &str, max: u32) -> JobClaim {
    JobClaim {
        queue: QUEUE.into(),
        worker: worker.into(),
        max,
        lease: Some(LEASE),
    }
}

impl Fixture {
    /// Enqueues `n` ordinary jobs in one call, oldest first.
    pub async fn put(&self, n: usize) -> Vec<JobId> {
        self.put_all(&vec![new_job(); n]).await
    }

    /// Enqueues one job that is new.
    pub async fn put_one(&self, new: NewJob) -> JobId {
        self.put_all(&[new]).await[0]
    }

    /// Enqueues these, which are all new.
    pub async fn put_all(&self, new: &[NewJob]) -> Vec<JobId> {
        let answers = self.offer(new).await;
        assert!(answers.iter().all(|a| !a.existing), "all are new");
        answers.into_iter().map(|answer| answer.id).collect()
    }

    /// Enqueues these, new or not.
    pub async fn offer(&self, new: &[NewJob]) -> Vec<EnqueuedJob> {
        let answers = ok(self.store.job_enqueue(new).await);
        assert_eq!(answers.len(), new.len(), "one answer for each job");
        answers
    }

    /// Claims as [`WORKER`] from [`QUEUE`], and tells all of what came.
    pub async fn look(&self, max: u32) -> JobsClaimed {
        ok(self.store.job_claim(&job_claim(WORKER, max)).await)
    }

    /// Claims as [`WORKER`] from [`QUEUE`].
    pub async fn take(&self, max: u32) -> Vec<ClaimedJob> {
        self.look(max).await.jobs
    }

    /// Claims from [`QUEUE`].
    pub async fn take_as(&self, worker: &str, max: u32) -> Vec<ClaimedJob> {
        ok(self.store.job_claim(&job_claim(worker, max)).await).jobs
    }

    /// Claims from a queue as [`WORKER`].
    pub async fn take_from(&self, queue: &str, max: u32) -> JobsClaimed {
        let claim = JobClaim {
            queue: queue.into(),
            ..job_claim(WORKER, max)
        };
        ok(self.store.job_claim(&claim).await)
    }

    /// Claims exactly one job as [`WORKER`].
    pub async fn take_one(&self) -> ClaimedJob {
        let mut jobs = self.take(1).await;
        assert_eq!(jobs.len(), 1, "one job can be claimed");
        jobs.remove(0)
    }

    /// Enqueues one job and claims it as [`WORKER`].
    pub async fn taken(&self, new: NewJob) -> ClaimedJob {
        let id = self.put_one(new).await;
        let claimed = self.take_one().await;
        assert_eq!(claimed.id, id, "nothing else waits");
        claimed
    }

    /// Ends a claim of [`WORKER`].
    pub async fn end(&self, job: &ClaimedJob, end: JobEnd) -> JobFinished {
        self.end_as(WORKER, job.claim(), end).await
    }

    /// Ends a claim.
    pub async fn end_as(&self, worker: &str, claim: JobRef, end: JobEnd) -> JobFinished {
        let answers = self.end_all(worker, &[JobFinish { claim, end }]).await;
        answers[0]
    }

    /// Ends many claims.
    pub async fn end_all(&self, worker: &str, finishes: &[JobFinish]) -> Vec<JobFinished> {
        self.end_all_and_see(worker, finishes).await.jobs
    }

    /// Ends many claims, and says which executions ended with them, by execution.
    pub async fn end_all_and_see(&self, worker: &str, finishes: &[JobFinish]) -> JobsFinished {
        let mut finished = ok(self.store.job_finish(worker, finishes).await);
        let answers = finished.jobs.len();
        assert_eq!(answers, finishes.len(), "one answer for each finish");
        finished.ended.sort_by_key(|ended| ended.execution);
        finished
    }

    /// Renews claims for [`LEASE`] and returns those still held, by id.
    pub async fn keep(&self, worker: &str, claims: &[JobRef]) -> Vec<JobId> {
        self.keep_for(worker, claims, LEASE).await
    }

    /// Renews claims and returns those still held, by id.
    pub async fn keep_for(&self, worker: &str, claims: &[JobRef], lease: Duration) -> Vec<JobId> {
        let mut held = ok(self.store.job_renew(worker, claims, lease).await);
        held.sort_unstable();
        held
    }

    /// A completed job.
    pub async fn job_completed(&self) -> JobId {
        let job = self.taken(new_job()).await;
        assert_eq!(self.end(&job, completed()).await, JobFinished::Completed);
        job.id
    }

    /// A job that failed for good.
    pub async fn job_failed(&self) -> JobId {
        let job = self.taken(new_job()).await;
        let end = self.end(&job, failed(Again::Never)).await;
        assert_eq!(end, JobFinished::Failed);
        job.id
    }

    /// Takes every expired lease back, by job.
    pub async fn sweep(&self) -> Vec<ExpiredJob> {
        let mut expired = ok(self.store.job_requeue_expired(1_000).await);
        expired.sort_by_key(|job| job.claim.job);
        expired
    }

    /// The job as it is now.
    pub async fn job(&self, id: JobId) -> Job {
        ok(self.store.job_get(id).await).expect("the job is there")
    }

    /// The jobs of [`QUEUE`] by status.
    pub async fn job_counts(&self) -> JobCounts {
        ok(self.store.queue_counts(QUEUE).await)
    }

    /// Changes [`QUEUE`].
    pub async fn set_queue(&self, change: QueueChange) -> Queue {
        ok(self.store.queue_update(QUEUE, &change).await)
    }

    /// Changes how many jobs of [`QUEUE`] may run.
    pub async fn set_queue_limit(&self, limit: Option<u32>) {
        let change = QueueChange {
            limit: Some(limit),
            ..QueueChange::default()
        };
        self.set_queue(change).await;
    }

    /// Every job that passes the filter, read in pages of `limit`, newest first.
    pub async fn all_jobs(&self, filter: &JobFilter, limit: u32) -> Vec<Job> {
        let mut all: Vec<Job> = Vec::new();
        let mut page = Page::first(limit);
        loop {
            let rows = ok(self.store.job_list(filter, page).await);
            assert!(rows.len() <= limit as usize, "a page holds its limit");
            let Some(last) = rows.last().map(|job| job.id) else {
                return all;
            };
            page = Page::after(last, limit);
            all.extend(rows);
        }
    }
}
