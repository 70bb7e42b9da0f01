//! Claims of workers that are not beside the store: names, sizes and ranges are checked, then one store operation. Knows ports only.

use crate::job::{Field, JobError, check_open_queue};
use leasehold_core::job::{Again, JobClaim, JobEnd, JobFinish, JobFinished, JobRef, WAIT_MAX};
use leasehold_core::lease::{LEASE_MAX, LEASE_MIN};
use leasehold_core::limits::{
    CLAIM_WAIT_MAX_SECONDS, HTTP_CLAIM_MAX_JOBS, HTTP_ENQUEUE_MAX_JOBS, HTTP_WORKER_NAME_MAX_CHARS,
    JOB_MAX_BATCH,
};
use leasehold_core::{JobId, JsonText, KeyId};
use leasehold_store::Store;
use std::time::Duration;

/// Characters an error may have; fewer are kept.
const ERROR_GIVEN_MAX_CHARS: usize = 100_000;

/// Whom a lease belongs to: a worker's name together with the key it came with. A lease is therefore renewed, reported on and finished only with the
/// key that claimed it, however well a stranger guesses names, ids and tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseOwner(String);

impl LeaseOwner {
    /// The worker of this name that came with this key.
    pub fn new(worker: &str, key: KeyId) -> Result<Self, JobError> {
        Field::default().text("worker", worker, HTTP_WORKER_NAME_MAX_CHARS)?;
        Ok(Self(format!("{worker}@{key}")))
    }

    /// As the store has it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Checks how many jobs one call from outside wants to enqueue.
pub fn check_batch(jobs: usize) -> Result<(), JobError> {
    Field::default().number("jobs", jobs, 1, HTTP_ENQUEUE_MAX_JOBS)
}

/// Checks a claim and how long it wants to wait.
pub fn check_claim(
    queue: &str,
    owner: &LeaseOwner,
    max: u32,
    lease: Option<Duration>,
    wait: Duration,
) -> Result<JobClaim, JobError> {
    let field = Field::default();
    check_open_queue(&field, queue)?;
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

/// Checks and extends leases; answers which of them are still held.
pub async fn renew(
    store: &dyn Store,
    owner: &LeaseOwner,
    claims: &[JobRef],
    lease: Duration,
) -> Result<Vec<JobId>, JobError> {
    let field = Field::default();
    field.number("claims", claims.len(), 1, JOB_MAX_BATCH)?;
    field.time("lease", lease, LEASE_MIN, LEASE_MAX)?;
    for (index, claim) in claims.iter().enumerate() {
        check_ref(&Field::of("claims", index), *claim)?;
    }
    Ok(store.job_renew(&owner.0, claims, lease).await?)
}

/// Checks and ends claims; answers are in the order asked.
pub async fn finish(
    store: &dyn Store,
    owner: &LeaseOwner,
    finishes: &[JobFinish],
) -> Result<Vec<JobFinished>, JobError> {
    Field::default().number("finishes", finishes.len(), 1, JOB_MAX_BATCH)?;
    for (index, finish) in finishes.iter().enumerate() {
        let field = Field::of("finishes", index);
        check_ref(&field, finish.claim)?;
        check_end(&field, &finish.end)?;
    }
    Ok(store.job_finish(&owner.0, finishes).await?.jobs)
}

/// Checks and keeps what a worker says of its progress; false if the lease is lost.
pub async fn progress(
    store: &dyn Store,
    owner: &LeaseOwner,
    claim: JobRef,
    progress: &JsonText,
) -> Result<bool, JobError> {
    let field = Field::default();
    check_ref(&field, claim)?;
    field.json("progress", progress)?;
    Ok(store.job_progress(&owner.0, claim, progress).await?)
}

fn check_ref(field: &Field, claim: JobRef) -> Result<(), JobError> {
    field.number("id", claim.job.0, 1, i64::MAX)?;
    field.number("token", claim.token, 1, i64::MAX)
}

fn check_end(field: &Field, end: &JobEnd) -> Result<(), JobError> {
    match end {
        JobEnd::Completed { result } => match result {
            Some(result) => field.json("result", result),
            None => Ok(()),
        },
        JobEnd::Failed { error, again } => {
            field.long_text("error", error, ERROR_GIVEN_MAX_CHARS)?;
            match again {
                Again::After(wait) => field.time("after", *wait, Duration::ZERO, WAIT_MAX),
                Again::Policy | Again::Never => Ok(()),
            }
        }
        JobEnd::Snoozed(wait) => field.time("after", *wait, Duration::ZERO, WAIT_MAX),
        JobEnd::GivenBack => Ok(()),
    }
}
