//! The storage of jobs, as a trait: what a store promises about each of their transitions. Knows no database.

use super::{
    EnqueuedJob, ExpiredJob, Job, JobCancelled, JobFilter, JobPrune, JobsFinished, JobsPruned,
    NewJob,
};
use crate::store_trait::store_trait;
use crate::{Page, Result};
use leasehold_core::job::{JobClaim, JobFinish, JobRef, JobsClaimed};
use leasehold_core::{JobId, JsonText};
use std::time::Duration;
use tokio::sync::watch;

store_trait! {
    /// Jobs: from being enqueued to their end.
    pub trait JobStore, observed by JobObserver {
        /// Puts jobs into their queues, all or none, and answers in the order asked. A job whose key is held in its queue is not
        /// put in; the holder is answered in its place. Of equal keys in one call the first is put in.
        /// Exact under races, and free of deadlock whatever the order of keys.
        async fn job_enqueue(&self, jobs: &[NewJob]) -> Result<Vec<EnqueuedJob>>;

        /// Takes up to `max` queued jobs whose time has come: priority first, then oldest, then lowest id. Each gets a lease and a fencing
        /// token that is higher than that of its every earlier claim. No limit is exceeded: after the commit of a claim at most the queue's
        /// limit of its jobs, and at most the limit of all, are running. Expired leases are taken back first where that matters. A paused or unknown queue gives none.
        async fn job_claim(&self, claim: &JobClaim) -> Result<JobsClaimed>;

        /// Extends the leases that the worker holds with these tokens and that have not expired, and returns which those are, in any order.
        /// A lease counts from now on: it may become shorter. One out of bounds becomes the nearest that is allowed.
        async fn job_renew(
            &self,
            worker: &str,
            claims: &[JobRef],
            lease: Duration,
        ) -> Result<Vec<JobId>>;

        /// Ends claims that the worker holds with these tokens and that have not expired, whatever the job is for. Answers are in the order asked; of
        /// two for one claim in a call the first counts. A wait is cut at the longest one may be.
        ///
        /// Atomic per job, not per call. The job of a node ends in a transaction of its own: ending the claim, recording the node's output or error, putting
        /// the next nodes into their queues and, at the end of the graph, ending execution and request and freeing the slot happen together. Nodes of one
        /// graph end in the order asked, after those that go back into their queue and were no attempt, which change nothing of a graph. Of two workers that end the last two predecessors of a node at once, one puts it into its queue.
        ///
        /// A job that cannot be ended does not keep the others from their end, unless the store has become unavailable; it is answered `NotWritten`. What
        /// ended stays ended: end only the claims answered `NotWritten` again, since those that have ended would be answered `LeaseLost`.
        ///
        /// # Errors
        /// Only if the call ended no claim, as far as is known.
        async fn job_finish(&self, worker: &str, finishes: &[JobFinish]) -> Result<JobsFinished>;

        /// Keeps what a worker says of its progress; false if the lease is lost. It is kept through retries, until the job has ended.
        async fn job_progress(&self, worker: &str, claim: JobRef, progress: &JsonText) -> Result<bool>;

        /// Takes back up to `limit` jobs whose lease has expired: queued again at once, or failed where their attempts are used up.
        /// Idempotent, safe from everywhere at once.
        async fn job_requeue_expired(&self, limit: u32) -> Result<Vec<ExpiredJob>>;

        /// Fails a queued job, with the error `cancelled`. One that a worker has is left alone.
        async fn job_cancel(&self, id: JobId) -> Result<JobCancelled>;

        /// The job; none if there was none, or it is no longer kept.
        async fn job_get(&self, id: JobId) -> Result<Option<Job>>;

        /// Jobs that pass the filter, newest first.
        async fn job_list(&self, filter: &JobFilter, page: Page<JobId>) -> Result<Vec<Job>>;

        /// Deletes ended jobs, those enqueued first or ended first before others, and deduplication keys whose window has passed. Call again while it finds something.
        async fn job_prune(&self, prune: &JobPrune) -> Result<JobsPruned>;

        /// Says that the caller is about to sleep until [`Self::job_bell`] changes: whatever puts a job into a queue, or makes room for one, from now on
        /// changes it. What was committed before does not, so the caller looks once more before it sleeps. False where the
        /// store cannot promise it now; then only looking from time to time helps.
        async fn job_arm(&self) -> Result<bool>;
    }

    forwarded {
        /// A number that changes when there may be a job to claim. Due times change nothing: [`JobsClaimed::next_due_in`] tells of them.
        fn job_bell(&self) -> watch::Receiver<u64>;
    }
}
