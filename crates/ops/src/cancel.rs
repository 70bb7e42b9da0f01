//! Cancelling a request or a job. The store decides whether it can be cancelled; why not is an error here.

use leasehold_core::key::{KeyScope, Need, Verdict};
use leasehold_core::{ExecutionId, JobId};
use leasehold_store::Store;
use leasehold_store::job::{Job, JobCancelled};
use leasehold_store::request::{Cancel, Cancelled};
use thiserror::Error;

/// How far the cancellation of a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelOutcome {
    /// The request has failed as cancelled.
    Cancelled,
    /// The cancellation is recorded; it takes effect when this execution's start is resolved or the engine has ended it.
    Recorded(ExecutionId),
}

/// Why a request or a job was not cancelled.
#[derive(Debug, Error)]
pub enum CancelError {
    /// There is no such request or job, or the caller may not see it.
    #[error("there is no such request or job")]
    NotFound,
    /// The request has ended.
    #[error("the request has ended and cannot be cancelled any more")]
    RequestFinished,
    /// The job has ended.
    #[error("the job has ended already")]
    JobFinished,
    /// A worker has the job.
    #[error("a worker has the job, and it is left alone")]
    JobRunning,
    /// The job ends with its node or its execution.
    #[error("the job is a node of an execution's graph; cancel the execution's request instead")]
    JobOfGraph,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] leasehold_store::Error),
}

/// Cancels a request: at once if it waits, else when its start is resolved or its execution has ended.
pub async fn request(store: &dyn Store, cancel: &Cancel) -> Result<CancelOutcome, CancelError> {
    match store.request_cancel(cancel).await? {
        Cancelled::Cancelled => Ok(CancelOutcome::Cancelled),
        Cancelled::Wished(execution) | Cancelled::Running(execution) => {
            Ok(CancelOutcome::Recorded(execution))
        }
        Cancelled::AlreadyFinished => Err(CancelError::RequestFinished),
        Cancelled::NotFound => Err(CancelError::NotFound),
    }
}

/// Cancels a job that no worker has, if a key of this scope may see it. Returns the failed job.
pub async fn job(store: &dyn Store, scope: &KeyScope, id: JobId) -> Result<Job, CancelError> {
    visible_job(store, scope, id).await?;
    match store.job_cancel(id).await? {
        JobCancelled::Cancelled => visible_job(store, scope, id).await,
        JobCancelled::Running => Err(CancelError::JobRunning),
        JobCancelled::Finished => Err(CancelError::JobFinished),
        JobCancelled::OfGraph => Err(CancelError::JobOfGraph),
        JobCancelled::NotFound => Err(CancelError::NotFound),
    }
}

async fn visible_job(store: &dyn Store, scope: &KeyScope, id: JobId) -> Result<Job, CancelError> {
    let job = store.job_get(id).await?;
    let may_see = |job: &Job| scope.may(&Need::Queue(&job.queue)) == Verdict::Allowed;
    job.filter(may_see).ok_or(CancelError::NotFound)
}
