//! Jobs in SQLite, one file a group of verbs. Each job is one row that never changes; the files here move what says where it is.

pub(crate) mod abandon;
pub(crate) mod cancel;
pub(crate) mod claim;
pub(crate) mod enqueue;
pub(crate) mod expire;
pub(crate) mod finish;
pub(crate) mod hold;
pub(crate) mod list;
pub(crate) mod prune;
pub(crate) mod read;
pub(crate) mod wish;

pub(crate) mod end;
mod lease;
mod line;
mod page;
mod wait;

use crate::SqliteStore;
use async_trait::async_trait;
use futures::future::join_all;
use leasehold_core::job::{JobClaim, JobFinish, JobFinished, JobRef, JobsClaimed};
use leasehold_core::{ExecutionId, JobId, JsonText};
use leasehold_store::job::{
    EnqueuedJob, ExpiredJob, Job, JobCancelled, JobFilter, JobPrune, JobStore, JobsFinished,
    JobsPruned, NewJob,
};
use leasehold_store::{Page, Result};
use read::Leases;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// Which node of which execution a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeOf {
    pub(crate) execution: ExecutionId,
    /// Its place in the graph's list.
    pub(crate) place: usize,
}

#[async_trait]
impl JobStore for SqliteStore {
    async fn job_enqueue(&self, jobs: &[NewJob]) -> Result<Vec<EnqueuedJob>> {
        let call = enqueue::Call::prepare(jobs);
        self.write("job_enqueue", move |s| enqueue::enqueue(s, &call))
            .await
    }

    async fn job_claim(&self, claim: &JobClaim) -> Result<JobsClaimed> {
        let (claim, cost) = (claim.clone(), Arc::clone(&self.claim_cost));
        self.write("job_claim", move |s| {
            let outcome = claim::claim(s, &claim);
            *cost.lock().unwrap_or_else(PoisonError::into_inner) = s.cost();
            outcome
        })
        .await
    }

    async fn job_renew(
        &self,
        worker: &str,
        claims: &[JobRef],
        lease: Duration,
    ) -> Result<Vec<JobId>> {
        let (worker, claims) = (worker.to_owned(), claims.to_vec());
        self.write("job_renew", move |s| {
            hold::renew(s, &worker, &claims, lease)
        })
        .await
    }

    /// Ends plain jobs in one operation, then each job of a node in one of its own. Those are handed over together, in the order asked, and so share a
    /// commit.
    async fn job_finish(&self, worker: &str, finishes: &[JobFinish]) -> Result<JobsFinished> {
        let (by, all) = (worker.to_owned(), finishes.to_vec());
        let answers = self
            .write("job_finish", move |s| finish::finish(s, &by, &all))
            .await?;
        let asked = finishes.iter().zip(&answers);
        let nodes = asked.filter(|(_, answer)| answer.is_none());
        let nodes = nodes.map(|(finish, _)| self.finish_node(worker, finish));
        let mut nodes = join_all(nodes).await.into_iter();
        let mut finished = JobsFinished::default();
        for answer in answers {
            finished.jobs.push(match answer {
                Some(answer) => answer,
                None => match nodes.next().transpose()? {
                    Some(node) => {
                        finished.ended.extend(node.ended);
                        node.job
                    }
                    None => JobFinished::LeaseLost,
                },
            });
        }
        Ok(finished)
    }

    async fn job_progress(&self, worker: &str, claim: JobRef, progress: &JsonText) -> Result<bool> {
        let (worker, progress) = (worker.to_owned(), progress.clone());
        self.write("job_progress", move |s| {
            hold::progress(s, &worker, claim, &progress)
        })
        .await
    }

    async fn job_requeue_expired(&self, limit: u32) -> Result<Vec<ExpiredJob>> {
        self.write("job_requeue_expired", move |s| expire::take_back(s, limit))
            .await
    }

    async fn job_cancel(&self, id: JobId) -> Result<JobCancelled> {
        self.write("job_cancel", move |s| cancel::cancel(s, id))
            .await
    }

    async fn job_get(&self, id: JobId) -> Result<Option<Job>> {
        self.read("job_get", move |s| {
            s.at_once(|s| Leases::unread().job(s, id))
        })
        .await
    }

    async fn job_list(&self, filter: &JobFilter, page: Page<JobId>) -> Result<Vec<Job>> {
        let filter = filter.clone();
        self.read("job_list", move |s| list::list(s, &filter, page))
            .await
    }

    async fn job_prune(&self, prune: &JobPrune) -> Result<JobsPruned> {
        let prune = *prune;
        self.write("job_prune", move |s| prune::prune(s, &prune))
            .await
    }

    async fn job_arm(&self) -> Result<bool> {
        Ok(true)
    }

    fn job_bell(&self) -> watch::Receiver<u64> {
        self.writer.bells().workers()
    }
}
