//! Helpers of the cases for jobs: enqueue, claim, finish. They panic if the store fails, and check nothing else.

use crate::Fixture;
use crate::factory::{LEASE, ok};
use leasehold_core::job::{
    ClaimedJob, JobClaim, JobEnd, JobFinish, JobFinished, JobRef, JobsClaimed, RetryMode,
};
use leasehold_core::{JobId, JsonText};
use leasehold_store::job::{Dedup, EnqueuedJob, ExpiredJob, Job, JobFilter, JobsFinished, NewJob};
use leasehold_store::queue::{JobCounts, Queue, QueueChange};
use leasehold_store::{Page, Store};
use serde_json::json;
use std::time::Duration;

/// The default queue.
pub const QUEUE: &str = "mail";
/// How often [`finish_contended`] repeats a finish. A call waits 200 ms for a locked row, so this is a minute.
const MAX_FINISH_CALLS: usize = 300;
/// The default worker.
pub const WORKER: &str = "worker-1";

/// A job with default options.
pub fn new_job() -> NewJob {
    NewJob::new(QUEUE, "send", payload(7))
}

/// A payload with this number.
pub fn payload(n: u32) -> JsonText {
    JsonText::from(&json!({"to": n}))
}

/// A job with a priority.
pub fn job_with_priority(priority: i16) -> NewJob {
    NewJob {
        priority,
        ..new_job()
    }
}

/// A job with a deduplication key, for a window or until the job has ended.
pub fn job_with_dedup_key(key: &str, window_seconds: Option<u64>) -> NewJob {
    NewJob {
        dedup: Some(Dedup {
            key: key.into(),
            window: window_seconds.map(Duration::from_secs),
        }),
        ..new_job()
    }
}

/// A job with a maximum of attempts.
pub fn job_with_max_attempts(max_attempts: u32) -> NewJob {
    NewJob {
        max_attempts: Some(max_attempts),
        ..new_job()
    }
}

/// The ids of the claimed jobs, in order.
pub fn job_ids(claimed: &[ClaimedJob]) -> Vec<JobId> {
    claimed.iter().map(|job| job.id).collect()
}

/// The claims, in order.
pub fn job_refs(claimed: &[ClaimedJob]) -> Vec<JobRef> {
    claimed.iter().map(ClaimedJob::claim).collect()
}

/// The end of a completed job without a result.
pub fn completed() -> JobEnd {
    JobEnd::Completed { result: None }
}

/// The end of a failed attempt.
pub fn failed(retry_mode: RetryMode) -> JobEnd {
    JobEnd::Failed {
        error: "it broke".into(),
        retry_mode,
    }
}

/// Finishes jobs beside other workers: repeats the claims that are `NotWritten` because another transaction holds their rows, as a worker does.
/// Returns the outcomes in the order of `finishes`.
pub async fn finish_contended(
    store: &dyn Store,
    worker: &str,
    finishes: &[JobFinish],
) -> Vec<JobFinished> {
    let mut finished = ok(store.job_finish(worker, finishes).await).jobs;
    for _ in 0..MAX_FINISH_CALLS {
        let is_unwritten = |n: &usize| finished[*n] == JobFinished::NotWritten;
        let unwritten: Vec<usize> = (0..finished.len()).filter(is_unwritten).collect();
        if unwritten.is_empty() {
            return finished;
        }
        let again: Vec<_> = unwritten.iter().map(|n| finishes[*n].clone()).collect();
        let answers = ok(store.job_finish(worker, &again).await).jobs;
        for (n, answer) in unwritten.into_iter().zip(answers) {
            finished[n] = answer;
        }
    }
    panic!("finishes of {worker} stay unwritten: {finished:?}");
}

/// Returns this end for each of these claims.
pub fn finish_each(claimed: &[ClaimedJob], end: &JobEnd) -> Vec<JobFinish> {
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
    /// Enqueues `n` jobs with default options in one call, oldest first.
    pub async fn enqueue_jobs(&self, n: usize) -> Vec<JobId> {
        self.enqueue_new_jobs(&vec![new_job(); n]).await
    }

    /// Enqueues one new job.
    pub async fn enqueue_job(&self, new: NewJob) -> JobId {
        self.enqueue_new_jobs(&[new]).await[0]
    }

    /// Enqueues these jobs, which must all be new.
    pub async fn enqueue_new_jobs(&self, new: &[NewJob]) -> Vec<JobId> {
        let answers = self.try_enqueue_jobs(new).await;
        assert!(answers.iter().all(|a| !a.existing), "all jobs are new");
        answers.into_iter().map(|answer| answer.id).collect()
    }

    /// Enqueues these jobs and returns the outcomes.
    pub async fn try_enqueue_jobs(&self, new: &[NewJob]) -> Vec<EnqueuedJob> {
        let answers = ok(self.store.job_enqueue(new).await);
        assert_eq!(answers.len(), new.len(), "one outcome for each job");
        answers
    }

    /// Claims jobs from [`QUEUE`] as [`WORKER`] and returns the whole outcome.
    pub async fn claim_outcome(&self, max: u32) -> JobsClaimed {
        ok(self.store.job_claim(&job_claim(WORKER, max)).await)
    }

    /// Claims jobs from [`QUEUE`] as [`WORKER`].
    pub async fn claim_jobs(&self, max: u32) -> Vec<ClaimedJob> {
        self.claim_outcome(max).await.jobs
    }

    /// Claims jobs from [`QUEUE`].
    pub async fn claim_jobs_as(&self, worker: &str, max: u32) -> Vec<ClaimedJob> {
        ok(self.store.job_claim(&job_claim(worker, max)).await).jobs
    }

    /// Claims jobs from a queue as [`WORKER`].
    pub async fn claim_jobs_from(&self, queue: &str, max: u32) -> JobsClaimed {
        let claim = JobClaim {
            queue: queue.into(),
            ..job_claim(WORKER, max)
        };
        ok(self.store.job_claim(&claim).await)
    }

    /// Claims exactly one job as [`WORKER`].
    pub async fn claim_job(&self) -> ClaimedJob {
        let mut jobs = self.claim_jobs(1).await;
        assert_eq!(jobs.len(), 1, "no job can be claimed");
        jobs.remove(0)
    }

    /// Enqueues one job and claims it as [`WORKER`].
    pub async fn enqueue_claimed_job(&self, new: NewJob) -> ClaimedJob {
        let id = self.enqueue_job(new).await;
        let claimed = self.claim_job().await;
        assert_eq!(claimed.id, id, "nothing else is queued");
        claimed
    }

    /// Finishes a job of [`WORKER`].
    pub async fn finish_job(&self, job: &ClaimedJob, end: JobEnd) -> JobFinished {
        self.finish_job_as(WORKER, job.claim(), end).await
    }

    /// Finishes a job.
    pub async fn finish_job_as(&self, worker: &str, claim: JobRef, end: JobEnd) -> JobFinished {
        let answers = self.finish_jobs(worker, &[JobFinish { claim, end }]).await;
        answers[0]
    }

    /// Finishes many jobs.
    pub async fn finish_jobs(&self, worker: &str, finishes: &[JobFinish]) -> Vec<JobFinished> {
        self.finish_jobs_with_executions(worker, finishes)
            .await
            .jobs
    }

    /// Finishes many jobs and returns the executions that ended with them, ordered by execution.
    pub async fn finish_jobs_with_executions(
        &self,
        worker: &str,
        finishes: &[JobFinish],
    ) -> JobsFinished {
        let mut finished = ok(self.store.job_finish(worker, finishes).await);
        let answers = finished.jobs.len();
        assert_eq!(answers, finishes.len(), "one outcome for each finish");
        finished.ended.sort_by_key(|ended| ended.execution);
        finished
    }

    /// Renews jobs for [`LEASE`] and returns those still held, by id.
    pub async fn renew_jobs(&self, worker: &str, claims: &[JobRef]) -> Vec<JobId> {
        self.renew_jobs_for(worker, claims, LEASE).await
    }

    /// Renews jobs and returns those still held, by id.
    pub async fn renew_jobs_for(
        &self,
        worker: &str,
        claims: &[JobRef],
        lease: Duration,
    ) -> Vec<JobId> {
        let mut held = ok(self.store.job_renew(worker, claims, lease).await).renewed;
        held.sort_unstable();
        held
    }

    /// Enqueues a job and completes it.
    pub async fn enqueue_completed_job(&self) -> JobId {
        let job = self.enqueue_claimed_job(new_job()).await;
        assert_eq!(
            self.finish_job(&job, completed()).await,
            JobFinished::Completed
        );
        job.id
    }

    /// Enqueues a job and fails it permanently.
    pub async fn enqueue_failed_job(&self) -> JobId {
        let job = self.enqueue_claimed_job(new_job()).await;
        let end = self.finish_job(&job, failed(RetryMode::Never)).await;
        assert_eq!(end, JobFinished::Failed);
        job.id
    }

    /// Requeues every job with an expired lease; returns them ordered by job.
    pub async fn requeue_expired_jobs(&self) -> Vec<ExpiredJob> {
        let mut expired = ok(self.store.job_requeue_expired(1_000).await);
        expired.sort_by_key(|job| job.claim.job);
        expired
    }

    /// Reads a job.
    pub async fn job(&self, id: JobId) -> Job {
        ok(self.store.job_get(id).await).expect("the job exists")
    }

    /// Counts the jobs of [`QUEUE`] by status.
    pub async fn job_counts(&self) -> JobCounts {
        ok(self.store.queue_counts(QUEUE).await)
    }

    /// Updates [`QUEUE`].
    pub async fn set_queue(&self, change: QueueChange) -> Queue {
        ok(self
            .store
            .queue_update(QUEUE, &change, &leasehold_store::Actor::Local)
            .await)
    }

    /// Sets the limit of [`QUEUE`].
    pub async fn set_queue_limit(&self, limit: Option<u32>) {
        let change = QueueChange {
            limit: Some(limit),
            ..QueueChange::default()
        };
        self.set_queue(change).await;
    }

    /// Returns every job that matches the filter, newest first, read in pages of `limit`.
    pub async fn all_jobs(&self, filter: &JobFilter, limit: u32) -> Vec<Job> {
        let mut all: Vec<Job> = Vec::new();
        let mut page = Page::first(limit);
        loop {
            let rows = ok(self.store.job_list(filter, page).await);
            assert!(rows.len() <= limit as usize, "the page exceeds its limit");
            let Some(last) = rows.last().map(|job| job.id) else {
                return all;
            };
            page = Page::after(last, limit);
            all.extend(rows);
        }
    }
}
