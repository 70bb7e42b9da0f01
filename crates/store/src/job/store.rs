//! The storage trait of jobs and its guarantees. Knows no database.

use super::{
    EnqueuedJob, ExpiredJob, Job, JobCancelled, JobFilter, JobPrune, JobsFinished, JobsPruned,
    NewJob,
};
use crate::store_trait::store_trait;
use crate::{Page, Result};
use leasehold_core::job::{JobClaim, JobFinish, JobRef, JobsClaimed, JobsRenewed};
use leasehold_core::{JobId, JsonText};
use std::time::Duration;
use tokio::sync::watch;

store_trait! {
    /// Jobs, from enqueue to end.
    pub trait JobStore, observed by JobObserver {
        /// Enqueues jobs, all or none; results are in the order of `jobs`. A job whose deduplication key is held in its queue is not
        /// inserted; the result names the holder instead. Of equal keys in one call the first is inserted.
        /// Exact under concurrent calls, and free of deadlocks for any order of keys.
        async fn job_enqueue(&self, jobs: &[NewJob]) -> Result<Vec<EnqueuedJob>>;

        /// Returns for each of these jobs which job holds its deduplication key now, in the order of `jobs`; none if its key is free, and for a
        /// job without a key. Only reads, and waits for no other transaction.
        async fn job_key_holders(&self, jobs: &[NewJob]) -> Result<Vec<Option<JobId>>>;

        /// Claims up to `max` due jobs: highest priority first, then oldest, then lowest id. Each gets a lease and a fencing
        /// token that is higher than that of every earlier claim of the job. No claim exceeds the limit of the queue or the limit over all queues.
        /// Expired leases are recovered first if a limit is reached. A paused or unknown queue returns no jobs.
        async fn job_claim(&self, claim: &JobClaim) -> Result<JobsClaimed>;

        /// Renews the unexpired leases that the worker holds with these tokens. A lease whose row is locked does not delay the others.
        /// The new lease starts now, so it may end earlier than the old one. A lease out of range is clamped.
        async fn job_renew(
            &self,
            worker: &str,
            claims: &[JobRef],
            lease: Duration,
        ) -> Result<JobsRenewed>;

        /// Ends the unexpired claims that the worker holds with these tokens. Outcomes are in the order of `finishes`; of
        /// two finishes of one claim the first counts. A wait is capped at the maximum.
        ///
        /// Atomic per job, not per call. The job of a node ends in a transaction of its own: ending the claim, recording the node's output or error, enqueueing
        /// the next nodes and, at the end of the graph, ending execution and request and freeing the slot happen together. Nodes of one
        /// graph end in the order of the call, after jobs that were snoozed or returned, which do not change a graph. If two workers end the last two
        /// predecessors of a node at once, exactly one of them enqueues it.
        ///
        /// A job that cannot be ended does not block the others, unless the store becomes unavailable; its outcome is `NotWritten`. Retry only
        /// the claims with `NotWritten`: claims that have ended would return `LeaseLost`.
        ///
        /// # Errors
        /// Only if the call is not known to have ended any claim, and the reason is not a locked row.
        async fn job_finish(&self, worker: &str, finishes: &[JobFinish]) -> Result<JobsFinished>;

        /// Stores the progress that a worker reports; false if the lease is lost. Progress survives retries and is kept until the job has ended.
        async fn job_progress(&self, worker: &str, claim: JobRef, progress: &JsonText) -> Result<bool>;

        /// Recovers up to `limit` jobs whose lease has expired: they are queued at once, or fail if their attempts are exhausted.
        /// Idempotent, and safe to call from several instances at once.
        async fn job_requeue_expired(&self, limit: u32) -> Result<Vec<ExpiredJob>>;

        /// Fails a queued job with the error `cancelled`. A running job is not changed.
        async fn job_cancel(&self, id: JobId) -> Result<JobCancelled>;

        /// Returns the job; none if it never existed or was deleted.
        async fn job_get(&self, id: JobId) -> Result<Option<Job>>;

        /// Lists jobs that match the filter, newest first.
        async fn job_list(&self, filter: &JobFilter, page: Page<JobId>) -> Result<Vec<Job>>;

        /// Deletes ended jobs, oldest first, and deduplication keys whose window has passed. Call it until it deletes nothing.
        async fn job_prune(&self, prune: &JobPrune) -> Result<JobsPruned>;

        /// Requests a notification on [`Self::subscribe_jobs`] for jobs that are enqueued, and limits that allow another job, from now on. Changes that were
        /// committed before send none, so the caller claims once more before it waits. Returns false if the store cannot deliver notifications
        /// now; then the caller relies on polling.
        async fn job_notification_arm(&self) -> Result<bool>;
    }

    forwarded {
        /// Subscribes to job notifications: the number changes when a claim may find a job. A job that becomes due sends none; see
        /// [`JobsClaimed::next_due_in`].
        fn subscribe_jobs(&self) -> watch::Receiver<u64>;
    }
}
