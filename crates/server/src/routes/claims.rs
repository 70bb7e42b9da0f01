//! What workers do with jobs: claim, renew, report and finish. A lease belongs to a worker's name together with its key.

use super::shown_jobs as shown;
use crate::access::{Access, Caller};
use crate::body::{Batch, Json};
use crate::line;
use crate::openapi::Common;
use crate::params::Path;
use crate::refusal::Outcome;
use crate::route::{Deadline, Routes};
use crate::state::State;
use axum::Extension;
use axum::extract::State as Reached;
use leasehold_api::job::{
    Claim, Claimed, FinishMany, FinishedMany, Held, Progress, Renew, Renewed,
};
use leasehold_core::job::{JobFinish, JobRef};
use leasehold_ops::{self as ops, LeaseOwner};
use std::time::Duration;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .add(routes!(claim), Access::Queue.deadline(Deadline::LongPoll))
        .add(routes!(renew), Access::Jobs)
        .add(routes!(finish), Access::Jobs)
        .add(routes!(progress), Access::Jobs)
}

/// Claims jobs, and waits up to `wait_ms` for one if there is none. The leases can be renewed, reported on and finished only by the same worker with the
/// same key. Who goes away while it waits has claimed nothing.
#[utoipa::path(post, path = "/v1/queues/{queue}/claim", operation_id = "job_claim", tag = "workers", request_body = Claim,
    params(("queue" = String, Path)), responses((status = 200, body = Claimed), Common))]
async fn claim(
    Reached(state): Reached<State>,
    Extension(caller): Extension<Caller>,
    Path(queue): Path<String>,
    Json(asked): Json<Claim>,
) -> Outcome<Json<Claimed>> {
    let owner = LeaseOwner::new(&asked.worker, caller.0.id)?;
    let wait = Duration::from_millis(asked.wait_ms);
    let lease = asked.lease_ms.map(Duration::from_millis);
    let claim = ops::claim::check_claim(&queue, &owner, asked.max, lease, wait)?;
    let wait = wait.min(state.options.claim_wait_max);
    let hands = line::claim(&state.store, &state.lines, claim, wait, &state.stop).await?;
    Ok(Json(shown::claimed(hands.over())))
}

/// Extends leases. Those that are not in the answer are lost: stop their work and drop its result.
#[utoipa::path(post, path = "/v1/jobs/renew", operation_id = "job_renew", tag = "workers", request_body = Renew,
    responses((status = 200, body = Renewed), Common))]
async fn renew(
    Reached(state): Reached<State>,
    Extension(caller): Extension<Caller>,
    Batch(asked): Batch<Renew>,
) -> Outcome<Json<Renewed>> {
    let owner = LeaseOwner::new(&asked.worker, caller.0.id)?;
    let claims = asked.claims.iter().map(|claim| JobRef {
        job: claim.id,
        token: claim.token,
    });
    let claims: Vec<JobRef> = claims.collect();
    let lease = Duration::from_millis(asked.lease_ms);
    let held = ops::claim::renew(&*state.store, &owner, &claims, lease).await?;
    Ok(Json(Renewed { held }))
}

/// Ends claims, each as its outcome says.
#[utoipa::path(post, path = "/v1/jobs/finish", operation_id = "job_finish", tag = "workers", request_body = FinishMany,
    responses((status = 200, body = FinishedMany), Common))]
async fn finish(
    Reached(state): Reached<State>,
    Extension(caller): Extension<Caller>,
    Batch(asked): Batch<FinishMany>,
) -> Outcome<Json<FinishedMany>> {
    let owner = LeaseOwner::new(&asked.worker, caller.0.id)?;
    let finishes = asked.finishes.into_iter().enumerate();
    let finishes: Vec<JobFinish> = finishes
        .map(|(index, finish)| shown::finish(&format!("/finishes/{index}"), finish))
        .collect::<Outcome<_>>()?;
    let ends = ops::claim::finish(&*state.store, &owner, &finishes).await?;
    let asked = finishes.iter().map(|finish| finish.claim.job);
    let finished = asked.zip(ends).map(|(id, end)| shown::finished(id, end));
    Ok(Json(FinishedMany {
        finished: finished.collect(),
    }))
}

/// Keeps what a worker says of its progress. If the lease is not held it is lost: stop the work and drop its result.
#[utoipa::path(post, path = "/v1/jobs/progress", operation_id = "job_progress", tag = "workers", request_body = Progress,
    responses((status = 200, body = Held), Common))]
async fn progress(
    Reached(state): Reached<State>,
    Extension(caller): Extension<Caller>,
    Json(asked): Json<Progress>,
) -> Outcome<Json<Held>> {
    let owner = LeaseOwner::new(&asked.worker, caller.0.id)?;
    let claim = JobRef {
        job: asked.id,
        token: asked.token,
    };
    let held = ops::claim::progress(&*state.store, &owner, claim, &asked.progress).await?;
    Ok(Json(Held { held }))
}
