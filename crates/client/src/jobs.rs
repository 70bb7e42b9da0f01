//! Queues and jobs, and what workers do with them.

use crate::client::Client;
use crate::error::Result;
use crate::list::List;
use leasehold_api::job::{
    Claim, Claimed, EnqueuedJob, EnqueuedJobs, FinishMany, FinishedMany, Held, Job, NewJob,
    NewJobs, Progress, Renew, Renewed,
};
use leasehold_api::queue::{JobCounts, JobLimit, Queue, QueueChange};
use leasehold_core::{JobId, JobStatus};
use reqwest::Method;
use std::time::Duration;

/// # Queues and jobs
impl Client {
    /// All queues, by name.
    pub fn queue_list(&self) -> List<Queue> {
        List::new(self, &["v1", "queues"])
    }

    /// A queue.
    ///
    /// # Errors
    /// If there is no such queue, or the call does not succeed.
    pub async fn queue_get(&self, queue: &str) -> Result<Queue> {
        self.get(&["v1", "queues", queue]).json().await
    }

    /// Changes a queue, or makes it.
    ///
    /// # Errors
    /// If something in it is not acceptable, or the call does not succeed.
    pub async fn queue_update(&self, queue: &str, change: &QueueChange) -> Result<Queue> {
        let call = self.call(Method::PATCH, &["v1", "queues", queue]);
        call.body(change)?.json().await
    }

    /// How many jobs a queue has, counted now.
    ///
    /// # Errors
    /// If there is no such queue, or the call does not succeed.
    pub async fn queue_counts(&self, queue: &str) -> Result<JobCounts> {
        self.get(&["v1", "queues", queue, "counts"]).json().await
    }

    /// How many jobs of all queues together may run at once.
    ///
    /// # Errors
    /// If the call does not succeed.
    pub async fn job_limit(&self) -> Result<Option<u32>> {
        let limit: JobLimit = self.get(&["v1", "job-limit"]).json().await?;
        Ok(limit.limit)
    }

    /// Sets how many jobs of all queues together may run at once.
    ///
    /// # Errors
    /// If the number is too high, or the call does not succeed.
    pub async fn job_limit_set(&self, limit: Option<u32>) -> Result<()> {
        let call = self.call(Method::PUT, &["v1", "job-limit"]);
        call.body(&JobLimit { limit })?.done().await
    }

    /// Jobs of a queue, newest first; in one status, or all.
    pub fn job_list(&self, queue: &str, status: Option<JobStatus>) -> List<Job> {
        List::new(self, &["v1", "queues", queue, "jobs"]).only("status", status)
    }

    /// Jobs of all queues, newest first; in one status, or all.
    pub fn job_list_all(&self, status: Option<JobStatus>) -> List<Job> {
        List::new(self, &["v1", "jobs"]).only("status", status)
    }

    /// Puts a job into a queue.
    ///
    /// # Errors
    /// If something in it is not acceptable, or the call does not succeed.
    pub async fn job_enqueue(&self, queue: &str, job: &NewJob) -> Result<EnqueuedJob> {
        self.job_enqueue_traced(queue, job, None).await
    }

    /// Puts a job into a queue as part of this trace, a `traceparent`; the worker is told of it.
    ///
    /// # Errors
    /// If something in it is not acceptable, or the call does not succeed.
    pub async fn job_enqueue_traced(
        &self,
        queue: &str,
        job: &NewJob,
        trace: Option<&str>,
    ) -> Result<EnqueuedJob> {
        let mut call = self.post(&["v1", "queues", queue, "jobs"]);
        // What no header can hold is no trace.
        let printable = |trace: &&str| trace.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if let Some(trace) = trace.filter(printable) {
            call = call.header("traceparent", trace);
        }
        call.body(job)?.json().await
    }

    /// Puts jobs into a queue, all or none; answers are in the order asked.
    ///
    /// # Errors
    /// If something in one is not acceptable, or the call does not succeed.
    pub async fn job_enqueue_many(&self, queue: &str, jobs: &NewJobs) -> Result<Vec<EnqueuedJob>> {
        let call = self.post(&["v1", "queues", queue, "jobs", "batch"]);
        let answer: EnqueuedJobs = call.body(jobs)?.json().await?;
        Ok(answer.jobs)
    }

    /// A job.
    ///
    /// # Errors
    /// If there is no such job, or the call does not succeed.
    pub async fn job_get(&self, id: JobId) -> Result<Job> {
        let id = id.to_string();
        self.get(&["v1", "jobs", &id]).json().await
    }

    /// Cancels a job that no worker has.
    ///
    /// # Errors
    /// If there is no such job, a worker has it, or it has ended; or if the call does not succeed.
    pub async fn job_cancel(&self, id: JobId) -> Result<Job> {
        let id = id.to_string();
        self.post(&["v1", "jobs", &id, "cancel"]).json().await
    }

    /// Claims jobs, waiting for one as long as the claim says. Dropped while it waits it claims nothing.
    ///
    /// # Errors
    /// If something in it is not acceptable, or the call does not succeed.
    pub async fn job_claim(&self, queue: &str, claim: &Claim) -> Result<Claimed> {
        let call = self.post(&["v1", "queues", queue, "claim"]);
        let wait = Duration::from_millis(claim.wait_ms);
        call.waiting(wait).body(claim)?.json().await
    }

    /// Extends leases. Those that are not in the answer are lost.
    ///
    /// # Errors
    /// If something in it is not acceptable, or the call does not succeed.
    pub async fn job_renew(&self, renew: &Renew) -> Result<Vec<JobId>> {
        let call = self.post(&["v1", "jobs", "renew"]);
        let answer: Renewed = call.body(renew)?.json().await?;
        Ok(answer.held)
    }

    /// Ends claims; answers are in the order asked.
    ///
    /// # Errors
    /// If something in one is not acceptable, or the call does not succeed.
    pub async fn job_finish(&self, finish: &FinishMany) -> Result<FinishedMany> {
        let call = self.post(&["v1", "jobs", "finish"]);
        call.body(finish)?.json().await
    }

    /// Reports progress; false if the lease is lost.
    ///
    /// # Errors
    /// If something in it is not acceptable, or the call does not succeed.
    pub async fn job_progress(&self, progress: &Progress) -> Result<bool> {
        let call = self.post(&["v1", "jobs", "progress"]);
        let answer: Held = call.body(progress)?.json().await?;
        Ok(answer.held)
    }
}
