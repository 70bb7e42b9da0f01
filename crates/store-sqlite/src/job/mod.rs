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
use crate::graph::finish::NodeFinished;
use crate::writer::Reply;
use async_trait::async_trait;
use leasehold_core::job::{JobClaim, JobFinish, JobFinished, JobRef, JobsClaimed};
use leasehold_core::{ExecutionId, JobId, JsonText};
use leasehold_store::failpoint::reach;
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

/// A claim of a call that ends several.
enum Sent {
    /// It was ended with the plain jobs.
    Done(JobFinished),
    /// The end of a node is in the writer's line.
    Node(Result<Reply<NodeFinished>>),
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

    /// Ends plain jobs in one operation, then each job of a node in one of its own. Those are put into the writer's line in the order asked, before any
    /// answer is awaited, and so share a commit.
    async fn job_finish(&self, worker: &str, finishes: &[JobFinish]) -> Result<JobsFinished> {
        let (by, all) = (worker.to_owned(), finishes.to_vec());
        let answers = self
            .write("job_finish", move |s| finish::finish(s, &by, &all))
            .await?;
        let mut sent = Vec::with_capacity(answers.len());
        for (finish, answer) in finishes.iter().zip(answers) {
            sent.push(match answer {
                Some(answer) => Sent::Done(answer),
                None => Sent::Node(self.send_finish_node(worker, finish).await),
            });
        }
        let (mut finished, mut failure) = (JobsFinished::default(), None);
        for sent in sent {
            let answer = match sent {
                Sent::Done(answer) => Ok(answer),
                Sent::Node(Ok(reply)) => reply.answer().await.map(|node| {
                    reach("job_finish/committed");
                    finished.ended.extend(node.ended);
                    node.job
                }),
                Sent::Node(Err(error)) => Err(error),
            };
            finished.jobs.push(answer.unwrap_or_else(|error| {
                failure.get_or_insert(error);
                JobFinished::NotWritten
            }));
        }
        finished.with_failure(failure)
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
