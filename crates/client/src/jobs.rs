//! Calls about queues and jobs, those of workers included.

use crate::client::Client;
use crate::error::Result;
use crate::list::List;
use leasehold_api::job::{
    ClaimOptions, ClaimedJobs, EnqueuedJob, EnqueuedJobs, FinishBatch, FinishResults, Job,
    LeaseRenewal, LeaseStatus, NewJob, NewJobs, ProgressReport, RenewedLeases,
};
use leasehold_api::queue::{JobCounts, JobLimit, Queue, QueueChange, QueueSharing};
use leasehold_core::{JobId, JobStatus};
use reqwest::Method;
use std::time::Duration;

/// # Queues and jobs
impl Client {
    /// Lists all queues, by name.
    pub fn queue_list(&self) -> List<Queue> {
        List::new(self, &["v1", "queues"])
    }

    /// Returns a queue.
    ///
    /// # Errors
    /// Fails if there is no such queue, or the call fails.
    pub async fn queue_get(&self, queue: &str) -> Result<Queue> {
        self.get(&["v1", "queues", queue]).json().await
    }

    /// Updates a queue, or creates it.
    ///
    /// # Errors
    /// Fails if a value is invalid, or the call fails.
    pub async fn queue_update(&self, queue: &str, change: &QueueChange) -> Result<Queue> {
        let call = self.call(Method::PATCH, &["v1", "queues", queue]);
        call.body(change)?.json().await
    }

    /// Sets whose graphs may use a queue besides its owner's: replaces the current sharing. Creates the queue if it does not exist.
    ///
    /// # Errors
    /// Fails if there is no workspace of a given name, a value is invalid, or the call fails.
    pub async fn queue_share(&self, queue: &str, sharing: &QueueSharing) -> Result<Queue> {
        let call = self.call(Method::PUT, &["v1", "queues", queue, "sharing"]);
        call.body(sharing)?.json().await
    }

    /// Counts the jobs of a queue.
    ///
    /// # Errors
    /// Fails if there is no such queue, or the call fails.
    pub async fn queue_counts(&self, queue: &str) -> Result<JobCounts> {
        self.get(&["v1", "queues", queue, "counts"]).json().await
    }

    /// Returns the limit on running jobs of all queues together.
    ///
    /// # Errors
    /// Fails if the call fails.
    pub async fn job_limit(&self) -> Result<Option<u32>> {
        let limit: JobLimit = self.get(&["v1", "job-limit"]).json().await?;
        Ok(limit.limit)
    }

    /// Sets the limit on running jobs of all queues together.
    ///
    /// # Errors
    /// Fails if the limit is too high, or the call fails.
    pub async fn job_limit_set(&self, limit: Option<u32>) -> Result<()> {
        let call = self.call(Method::PUT, &["v1", "job-limit"]);
        call.body(&JobLimit { limit })?.done().await
    }

    /// Lists the jobs of a queue, newest first; of one status, or all.
    pub fn job_list(&self, queue: &str, status: Option<JobStatus>) -> List<Job> {
        List::new(self, &["v1", "queues", queue, "jobs"]).filter("status", status)
    }

    /// Lists the jobs of all queues, newest first; of one status, or all.
    pub fn job_list_all(&self, status: Option<JobStatus>) -> List<Job> {
        List::new(self, &["v1", "jobs"]).filter("status", status)
    }

    /// Enqueues a job.
    ///
    /// # Errors
    /// Fails if a value is invalid, or the call fails.
    pub async fn job_enqueue(&self, queue: &str, job: &NewJob) -> Result<EnqueuedJob> {
        self.job_enqueue_traced(queue, job, None).await
    }

    /// Enqueues a job with a `traceparent`, which the worker gets with the job.
    ///
    /// # Errors
    /// Fails if a value is invalid, or the call fails.
    pub async fn job_enqueue_traced(
        &self,
        queue: &str,
        job: &NewJob,
        trace: Option<&str>,
    ) -> Result<EnqueuedJob> {
        let mut call = self.post(&["v1", "queues", queue, "jobs"]);
        // A text that is not a valid header value is not a trace.
        let printable = |trace: &&str| trace.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if let Some(trace) = trace.filter(printable) {
            call = call.header("traceparent", trace);
        }
        call.body(job)?.json().await
    }

    /// Enqueues jobs, all or none. Returns them in the same order.
    ///
    /// # Errors
    /// Fails if a value of one is invalid, or the call fails.
    pub async fn job_enqueue_many(&self, queue: &str, jobs: &NewJobs) -> Result<Vec<EnqueuedJob>> {
        let call = self.post(&["v1", "queues", queue, "jobs", "batch"]);
        let answer: EnqueuedJobs = call.body(jobs)?.json().await?;
        Ok(answer.jobs)
    }

    /// Returns a job.
    ///
    /// # Errors
    /// Fails if there is no such job, or the call fails.
    pub async fn job_get(&self, id: JobId) -> Result<Job> {
        let id = id.to_string();
        self.get(&["v1", "jobs", &id]).json().await
    }

    /// Cancels a queued job.
    ///
    /// # Errors
    /// Fails if there is no such job, it is running or has ended, or the call fails.
    pub async fn job_cancel(&self, id: JobId) -> Result<Job> {
        let id = id.to_string();
        self.post(&["v1", "jobs", &id, "cancel"]).json().await
    }

    /// Claims jobs, waiting for one up to the claim's `wait_ms`. Dropping the future while it waits claims nothing.
    ///
    /// # Errors
    /// Fails if a value is invalid, or the call fails.
    pub async fn job_claim(&self, queue: &str, claim: &ClaimOptions) -> Result<ClaimedJobs> {
        let call = self.post(&["v1", "queues", queue, "claim"]);
        let wait = Duration::from_millis(claim.wait_ms);
        call.waiting(wait).body(claim)?.json().await
    }

    /// Extends leases. The leases that are neither held nor busy in the answer are lost.
    ///
    /// # Errors
    /// Fails if a value is invalid, or the call fails.
    pub async fn job_renew(&self, renew: &LeaseRenewal) -> Result<RenewedLeases> {
        let call = self.post(&["v1", "jobs", "renew"]);
        call.body(renew)?.json().await
    }

    /// Finishes jobs. Returns one answer per finish, in the same order.
    ///
    /// # Errors
    /// Fails if a value of one is invalid, or the call fails.
    pub async fn job_finish(&self, finish: &FinishBatch) -> Result<FinishResults> {
        let call = self.post(&["v1", "jobs", "finish"]);
        call.body(finish)?.json().await
    }

    /// Reports progress. Returns false if the lease is lost.
    ///
    /// # Errors
    /// Fails if a value is invalid, or the call fails.
    pub async fn job_progress(&self, progress: &ProgressReport) -> Result<bool> {
        let call = self.post(&["v1", "jobs", "progress"]);
        let answer: LeaseStatus = call.body(progress)?.json().await?;
        Ok(answer.held)
    }
}
