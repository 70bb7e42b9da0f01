//! Claims of remote workers: validate names, sizes and ranges, then run one store operation. Knows ports only.

use crate::job::{Field, JobOperationError, check_queue_field};
use crate::job_quota::JobQuotas;
use leasehold_core::job::{
    JobClaim, JobEnd, JobFinish, JobFinished, JobRef, JobsRenewed, RetryMode, WAIT_MAX,
};
use leasehold_core::lease::{LEASE_MAX, LEASE_MIN};
use leasehold_core::limits::{
    CLAIM_WAIT_MAX_SECONDS, HTTP_CLAIM_MAX_JOBS, HTTP_ENQUEUE_MAX_JOBS, HTTP_WORKER_NAME_MAX_CHARS,
    JOB_MAX_BATCH,
};
use leasehold_core::{JsonText, KeyId};
use leasehold_store::key::Key;
use leasehold_store::{Store, Turns};
use std::time::Duration;

/// Characters that an error may have; the store keeps fewer.
const ERROR_GIVEN_MAX_CHARS: usize = 100_000;

/// The owner of a lease: the worker's name together with the id of its API key. A lease can therefore be renewed and finished only with the
/// key that claimed it, even if another caller guesses names, ids and tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseOwner(String);

impl LeaseOwner {
    /// Creates the owner for a worker's name and key.
    pub fn new(worker: &str, key: KeyId) -> Result<Self, JobOperationError> {
        Field::default().text("worker", worker, HTTP_WORKER_NAME_MAX_CHARS)?;
        Ok(Self(format!("{worker}@{key}")))
    }

    /// Returns the owner as stored.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Validates the number of jobs of one enqueue call over HTTP.
pub fn check_batch(jobs: usize) -> Result<(), JobOperationError> {
    Field::default().number("jobs", jobs, 1, HTTP_ENQUEUE_MAX_JOBS)
}

/// Validates a claim and its wait.
pub fn check_claim(
    queue: &str,
    owner: &LeaseOwner,
    max: u32,
    lease: Option<Duration>,
    wait: Duration,
) -> Result<JobClaim, JobOperationError> {
    let field = Field::default();
    check_queue_field(&field, queue)?;
    field.number("max", max, 1, HTTP_CLAIM_MAX_JOBS)?;
    if let Some(lease) = lease {
        field.time("lease", lease, LEASE_MIN, LEASE_MAX)?;
    }
    let longest = Duration::from_secs(CLAIM_WAIT_MAX_SECONDS);
    field.time("wait", wait, Duration::ZERO, longest)?;
    Ok(JobClaim {
        queue: queue.to_owned(),
        worker: owner.0.clone(),
        max,
        lease,
    })
}

/// Validates and renews leases.
pub async fn renew(
    store: &dyn Store,
    owner: &LeaseOwner,
    claims: &[JobRef],
    lease: Duration,
) -> Result<JobsRenewed, JobOperationError> {
    let field = Field::default();
    field.number("claims", claims.len(), 1, JOB_MAX_BATCH)?;
    field.time("lease", lease, LEASE_MIN, LEASE_MAX)?;
    for (index, claim) in claims.iter().enumerate() {
        check_ref(&Field::of("claims", index), *claim)?;
    }
    Ok(store.job_renew(&owner.0, claims, lease).await?)
}

/// Validates and ends claims; outcomes are in the order of `finishes`.
pub async fn finish(
    store: &dyn Store,
    owner: &LeaseOwner,
    finishes: &[JobFinish],
) -> Result<Vec<JobFinished>, JobOperationError> {
    Field::default().number("finishes", finishes.len(), 1, JOB_MAX_BATCH)?;
    let mut turns = Turns::default();
    for (index, finish) in finishes.iter().enumerate() {
        let field = Field::of("finishes", index);
        check_ref(&field, finish.claim)?;
        check_end(&field, &finish.end)?;
        turns.count(text_bytes(&finish.end)).await;
    }
    Ok(store.job_finish(&owner.0, finishes).await?.jobs)
}

/// Validates and stores the progress that a worker reports, if the quota of its key allows its bytes; false if the lease is lost.
pub async fn progress(
    store: &dyn Store,
    quotas: &JobQuotas,
    key: &Key,
    owner: &LeaseOwner,
    claim: JobRef,
    progress: &JsonText,
) -> Result<bool, JobOperationError> {
    let field = Field::default();
    check_ref(&field, claim)?;
    field.json("progress", progress)?;
    let bytes = progress.as_str().len() as u64;
    let _admission = quotas
        .admit_bytes(store, key.id, &key.rights.scope, bytes)
        .await?;
    Ok(store.job_progress(&owner.0, claim, progress).await?)
}

fn check_ref(field: &Field, claim: JobRef) -> Result<(), JobOperationError> {
    field.number("id", claim.job.0, 1, i64::MAX)?;
    field.number("token", claim.token, 1, i64::MAX)
}

/// Returns the bytes of the text that [`check_end`] reads.
fn text_bytes(end: &JobEnd) -> usize {
    match end {
        JobEnd::Completed { result } => result.as_ref().map_or(0, |result| result.as_str().len()),
        JobEnd::Failed { error, .. } => error.len(),
        JobEnd::Snoozed(_) | JobEnd::Returned => 0,
    }
}

fn check_end(field: &Field, end: &JobEnd) -> Result<(), JobOperationError> {
    match end {
        JobEnd::Completed { result } => match result {
            Some(result) => field.json("result", result),
            None => Ok(()),
        },
        JobEnd::Failed { error, retry_mode } => {
            field.long_text("error", error, ERROR_GIVEN_MAX_CHARS)?;
            match retry_mode {
                RetryMode::After(wait) => field.time("after", *wait, Duration::ZERO, WAIT_MAX),
                RetryMode::Policy | RetryMode::Never => Ok(()),
            }
        }
        JobEnd::Snoozed(wait) => field.time("after", *wait, Duration::ZERO, WAIT_MAX),
        JobEnd::Returned => Ok(()),
    }
}
