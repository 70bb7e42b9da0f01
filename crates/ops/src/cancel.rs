//! Cancelling a request or a job. The store decides whether it can be cancelled; a refusal is an error here.

use leasehold_core::key::{AccessDecision, KeyScope, Permission};
use leasehold_core::{ExecutionId, JobId};
use leasehold_store::Store;
use leasehold_store::job::{Job, JobCancelled};
use leasehold_store::request::{Cancel, Cancelled};
use thiserror::Error;

/// Outcome of cancelling a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelOutcome {
    /// The request has failed as cancelled.
    Cancelled,
    /// The cancel request is stored; it takes effect when the outcome of this execution's start is known, or the engine has ended it.
    Recorded(ExecutionId),
}

/// Why a request or a job was not cancelled.
#[derive(Debug, Error)]
pub enum CancelError {
    /// No such request or job exists, or the caller has no access to it.
    #[error("request or job not found")]
    NotFound,
    /// The request has ended.
    #[error("cannot cancel: the request has already ended")]
    RequestFinished,
    /// The job has ended.
    #[error("cannot cancel: the job has already ended")]
    JobFinished,
    /// A worker holds the job.
    #[error("cannot cancel: the job is running")]
    JobRunning,
    /// The job is a node of a graph.
    #[error(
        "cannot cancel: the job is a node of an execution's graph; cancel the request of the execution instead"
    )]
    JobOfGraph,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] leasehold_store::Error),
}

/// Cancels a request: at once if it is pending, else when the outcome of its start is known or its execution has ended.
pub async fn request(store: &dyn Store, cancel: &Cancel) -> Result<CancelOutcome, CancelError> {
    match store.request_cancel(cancel).await? {
        Cancelled::Cancelled => Ok(CancelOutcome::Cancelled),
        Cancelled::Requested(execution) | Cancelled::Running(execution) => {
            Ok(CancelOutcome::Recorded(execution))
        }
        Cancelled::AlreadyFinished => Err(CancelError::RequestFinished),
        Cancelled::NotFound => Err(CancelError::NotFound),
    }
}

/// Cancels a queued job if a key of this scope has access to it. Returns the failed job.
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
    let is_visible =
        |job: &Job| scope.authorize(&Permission::Queue(&job.queue)) == AccessDecision::Allowed;
    job.filter(is_visible).ok_or(CancelError::NotFound)
}
