//! Jobs in SQLite, one module for each operation. A job is one immutable row; its line, waiting, lease and end rows say where it is.

pub(crate) mod abandon;
pub(crate) mod cancel;
pub(crate) mod claim;
pub(crate) mod enqueue;
pub(crate) mod expire;
pub(crate) mod finish;
pub(crate) mod heartbeat;
pub(crate) mod list;
pub(crate) mod overrides;
pub(crate) mod prune;
pub(crate) mod read;

pub(crate) mod end;
pub(crate) mod group;
mod key_holders;
mod lease;
mod line;
mod page;
mod turns;
mod unusable;
mod wait;

use crate::SqliteStore;
use crate::graph::finish::NodeFinished;
use crate::graph::open;
use crate::session::Session;
use crate::writer::Reply;
use async_trait::async_trait;
use leasehold_core::job::{JobClaim, JobFinish, JobFinished, JobRef, JobsClaimed, JobsRenewed};
use leasehold_core::{ExecutionId, JobId, JsonText};
use leasehold_store::failpoint::reach;
use leasehold_store::job::{
    EnqueuedJob, ExpiredJob, Job, JobCancelled, JobFilter, JobPrune, JobStore, JobsFinished,
    JobsPruned, NewJob,
};
use leasehold_store::node_payload::{self, ClaimedNodes};
use leasehold_store::{Error, Page, Result};
use read::LeaseIndex;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// The node of an execution that a job runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeRef {
    pub(crate) execution: ExecutionId,
    /// The node's index in the graph's list.
    pub(crate) index: usize,
}

/// The finish of one job in a call that finishes several.
enum PendingFinish {
    /// Done, together with the jobs that are not nodes.
    Done(JobFinished),
    /// Queued with the writer: the job runs a node.
    Node(Result<Reply<NodeFinished>>),
}

impl SqliteStore {
    /// Finishes jobs that are not nodes. If that fails for one of them, finishes each alone; those for which it fails again are not written. Returns the
    /// failure, if there was one.
    async fn finish_plain(
        &self,
        worker: &str,
        finishes: &[JobFinish],
    ) -> Result<(Vec<Option<JobFinished>>, Option<Error>)> {
        let (by, all) = (worker.to_owned(), finishes.to_vec());
        let finished = self.write("job_finish", move |s| finish::finish(s, &by, &all));
        let failure = match finished.await {
            Ok(answers) => return Ok((answers, None)),
            Err(error) if error.concerns_one_item() && finishes.len() > 1 => error,
            Err(error) => return Err(error),
        };
        let (by, all) = (worker.to_owned(), finishes.to_vec());
        let each = move |s: &Session<'_>| {
            let answers = all.iter().map(|one| {
                let name = format!("job {}", one.claim.job);
                let ends = std::slice::from_ref(one);
                let answer = s.isolated(name, || Ok(finish::finish(s, &by, ends)?.pop()))?;
                Ok(match answer {
                    Some(answer) => answer.flatten(),
                    None => Some(JobFinished::NotWritten),
                })
            });
            answers.collect()
        };
        let answers = self.write("job_finish", each).await?;
        Ok((answers, Some(failure)))
    }
}

#[async_trait]
impl JobStore for SqliteStore {
    async fn job_enqueue(&self, jobs: &[NewJob]) -> Result<Vec<EnqueuedJob>> {
        let call = enqueue::EnqueueBatch::prepare(jobs);
        self.write("job_enqueue", move |s| enqueue::enqueue(s, &call))
            .await
    }

    async fn job_key_holders(&self, jobs: &[NewJob]) -> Result<Vec<Option<JobId>>> {
        key_holders::find(self, jobs).await
    }

    async fn job_claim(&self, claim: &JobClaim) -> Result<JobsClaimed> {
        let (call, cost) = (claim.clone(), Arc::clone(&self.claim_cost));
        let versions = Arc::clone(&self.versions);
        let (mut claimed, (nodes, broken)) = self
            .write("job_claim", move |s| {
                let claimed = claim::claim(s, &call);
                *cost.lock().unwrap_or_else(PoisonError::into_inner) = s.cost();
                let claimed = claimed?;
                let referring = node_payload::referring(&claimed.jobs);
                let nodes = open::claimed_nodes(s, &versions, &referring)?;
                Ok((claimed, nodes))
            })
            .await?;
        claimed.jobs.retain(|job| !broken.contains(&job.id));
        if !nodes.is_empty() {
            let markers = self.crash_markers.clone();
            let build = move |nodes: &ClaimedNodes| open::payloads(&markers, nodes);
            let failed = node_payload::fill(&mut claimed.jobs, nodes, build).await;
            if !failed.is_empty() {
                self.job_finish(&claim.worker, &failed).await?;
            }
        }
        Ok(claimed)
    }

    async fn job_renew(
        &self,
        worker: &str,
        claims: &[JobRef],
        lease: Duration,
    ) -> Result<JobsRenewed> {
        let (worker, claims) = (worker.to_owned(), claims.to_vec());
        let renewed = self.write("job_renew", move |s| {
            heartbeat::renew(s, &worker, &claims, lease)
        });
        Ok(JobsRenewed {
            renewed: renewed.await?,
            // One transaction writes at a time, so no row is locked.
            busy: Vec::new(),
        })
    }

    /// Finishes plain jobs in one operation, then each node's job in its own operation. These are queued in the caller's
    /// order before any answer is awaited, so they share a commit.
    async fn job_finish(&self, worker: &str, finishes: &[JobFinish]) -> Result<JobsFinished> {
        let (answers, mut failure) = self.finish_plain(worker, finishes).await?;
        let mut pending = Vec::with_capacity(answers.len());
        for (finish, answer) in finishes.iter().zip(answers) {
            pending.push(match answer {
                Some(answer) => PendingFinish::Done(answer),
                None => PendingFinish::Node(self.send_finish_node(worker, finish).await),
            });
        }
        let mut finished = JobsFinished::default();
        for pending in pending {
            let answer = match pending {
                PendingFinish::Done(answer) => Ok(answer),
                PendingFinish::Node(Ok(reply)) => reply.wait().await.map(|node| {
                    reach("job_finish/committed");
                    finished.ended.extend(node.ended);
                    node.job
                }),
                PendingFinish::Node(Err(error)) => Err(error),
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
            heartbeat::progress(s, &worker, claim, &progress)
        })
        .await
    }

    async fn job_requeue_expired(&self, limit: u32) -> Result<Vec<ExpiredJob>> {
        self.write("job_requeue_expired", move |s| {
            expire::requeue_expired(s, limit)
        })
        .await
    }

    async fn job_cancel(&self, id: JobId) -> Result<JobCancelled> {
        self.write("job_cancel", move |s| cancel::cancel(s, id))
            .await
    }

    async fn job_get(&self, id: JobId) -> Result<Option<Job>> {
        self.read("job_get", move |s| {
            s.in_snapshot(|s| LeaseIndex::new().job(s, id))
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

    async fn job_notification_arm(&self) -> Result<bool> {
        Ok(true)
    }

    fn subscribe_jobs(&self) -> watch::Receiver<u64> {
        self.writer.notifiers().subscribe_workers()
    }
}
