//! Jobs as the port asks for them: each call hands its verb's function to the writer or to a reader. Knows no SQL.

use crate::{SqliteStore, graph, job};
use futures::future::join_all;
use leasehold_core::job::{JobClaim, JobFinish, JobFinished, JobRef, JobsClaimed};
use leasehold_core::{JobId, JsonText};
use leasehold_store::job::{
    EnqueuedJob, ExpiredJob, Job, JobCancelled, JobFilter, JobPrune, JobsFinished, JobsPruned,
    NewJob,
};
use leasehold_store::{Page, Result};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

pub(crate) async fn enqueue(store: &SqliteStore, jobs: &[NewJob]) -> Result<Vec<EnqueuedJob>> {
    let call = job::enqueue::Call::prepare(jobs);
    store
        .write("job_enqueue", move |s| job::enqueue::enqueue(s, &call))
        .await
}

pub(crate) async fn claim(store: &SqliteStore, claim: &JobClaim) -> Result<JobsClaimed> {
    let (claim, cost) = (claim.clone(), Arc::clone(&store.claim_cost));
    store
        .write("job_claim", move |s| {
            let outcome = job::claim::claim(s, &claim);
            *cost.lock().unwrap_or_else(PoisonError::into_inner) = s.cost();
            outcome
        })
        .await
}

pub(crate) async fn renew(
    store: &SqliteStore,
    worker: &str,
    claims: &[JobRef],
    lease: Duration,
) -> Result<Vec<JobId>> {
    let (worker, claims) = (worker.to_owned(), claims.to_vec());
    store
        .write("job_renew", move |s| {
            job::hold::renew(s, &worker, &claims, lease)
        })
        .await
}

/// Ends plain jobs in one operation, then each job of a node in one of its own. Those are handed over together, in the order asked, and so share a
/// commit.
pub(crate) async fn finish(
    store: &SqliteStore,
    worker: &str,
    finishes: &[JobFinish],
) -> Result<JobsFinished> {
    let (by, all) = (worker.to_owned(), finishes.to_vec());
    let answers = store
        .write("job_finish", move |s| job::finish::finish(s, &by, &all))
        .await?;
    let asked = finishes.iter().zip(&answers);
    let nodes = asked.filter(|(_, answer)| answer.is_none());
    let nodes = nodes.map(|(finish, _)| graph::calls::finish(store, worker, finish));
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

pub(crate) async fn progress(
    store: &SqliteStore,
    worker: &str,
    claim: JobRef,
    progress: &JsonText,
) -> Result<bool> {
    let (worker, progress) = (worker.to_owned(), progress.clone());
    store
        .write("job_progress", move |s| {
            job::hold::progress(s, &worker, claim, &progress)
        })
        .await
}

pub(crate) async fn requeue_expired(store: &SqliteStore, limit: u32) -> Result<Vec<ExpiredJob>> {
    store
        .write("job_requeue_expired", move |s| {
            job::expire::take_back(s, limit)
        })
        .await
}

pub(crate) async fn cancel(store: &SqliteStore, id: JobId) -> Result<JobCancelled> {
    store
        .write("job_cancel", move |s| job::cancel::cancel(s, id))
        .await
}

pub(crate) async fn get(store: &SqliteStore, id: JobId) -> Result<Option<Job>> {
    store.read("job_get", move |s| job::read::get(s, id)).await
}

pub(crate) async fn list(
    store: &SqliteStore,
    filter: &JobFilter,
    page: Page<JobId>,
) -> Result<Vec<Job>> {
    let filter = filter.clone();
    store
        .read("job_list", move |s| job::list::list(s, &filter, page))
        .await
}

pub(crate) async fn prune(store: &SqliteStore, prune: &JobPrune) -> Result<JobsPruned> {
    let prune = *prune;
    store
        .write("job_prune", move |s| job::prune::prune(s, &prune))
        .await
}
