//! Routes of workers: claim jobs, renew leases, report progress, finish jobs. A lease belongs to a worker's name together with its key.

use super::convert_jobs as convert;
use crate::access::{self, Access, Caller};
use crate::api_error::{ApiError, ApiResult};
use crate::body::{BatchJson, Json};
use crate::claim_wait;
use crate::openapi::CommonResponses;
use crate::params::Path;
use crate::route::{Deadline, Routes};
use crate::state::State;
use axum::Extension;
use axum::extract::State as AxumState;
use leasehold_api::job::{
    ClaimOptions, ClaimedJobs, FinishBatch, FinishResults, LeaseRenewal, LeaseStatus,
    ProgressReport, RenewedLeases,
};
use leasehold_core::job::{JobFinish, JobRef};
use leasehold_ops::{self as ops, LeaseOwner};
use std::time::Duration;
use tokio::time::Instant;
use utoipa_axum::routes;

/// How often a claim that waits for jobs checks that its key is still valid.
const KEY_CHECK_INTERVAL: Duration = Duration::from_secs(2);

pub(super) fn routes() -> Routes {
    Routes::default()
        .add(
            routes!(claim),
            Access::Queue.deadline(Deadline::LongPoll).needs_payloads(),
        )
        .add(routes!(renew), Access::Jobs)
        .add(routes!(finish), Access::Jobs)
        .add(routes!(progress), Access::Jobs)
}

/// Claims jobs, and waits up to `wait_ms` if there are none. Only the same worker with the same key can renew, report on and finish the leases.
/// A caller that disconnects while it waits has claimed nothing.
#[utoipa::path(post, path = "/v1/queues/{queue}/claim", operation_id = "job_claim", tag = "workers", request_body = ClaimOptions,
    params(("queue" = String, Path)), responses((status = 200, body = ClaimedJobs), CommonResponses))]
async fn claim(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Path(queue): Path<String>,
    Json(body): Json<ClaimOptions>,
) -> ApiResult<Json<ClaimedJobs>> {
    let owner = LeaseOwner::new(&body.worker, caller.0.id)?;
    let wait = Duration::from_millis(body.wait_ms);
    let lease = body.lease_ms.map(Duration::from_millis);
    let claim = ops::claim::check_claim(&queue, &owner, body.max, lease, wait)?;
    let wait = wait.min(state.options.claim_wait_max);
    // The caller sent the call earlier than this.
    let begun = Instant::now();
    let claiming = claim_wait::claim(&state.store, &state.claim_waiters, claim, wait, &state.stop);
    let guard = tokio::select! {
        guard = claiming => guard?,
        error = key_ended(&state, &caller) => return Err(error),
    };
    // A key that became invalid while the claim waited gets no jobs: dropping the guard returns them.
    if begun.elapsed() >= state.options.key_fresh_for
        && let Ok(found) = state.keys.find_again(&caller.0).await
    {
        access::valid(found)?;
    }
    let waited = guard.sent().saturating_duration_since(begun);
    Ok(Json(convert::claimed(guard.into_jobs(), waited)))
}

/// Waits until the key of a call is revoked or has expired.
async fn key_ended(state: &State, caller: &Caller) -> ApiError {
    loop {
        tokio::time::sleep(KEY_CHECK_INTERVAL).await;
        // While the store is unavailable, the claim fails itself.
        if let Ok(found) = state.keys.find_again(&caller.0).await
            && let Err(error) = access::valid(found)
        {
            return error;
        }
    }
}

/// Renews leases. A lease that is neither in `held` nor in `busy` of the response is lost: stop the work and discard its result.
#[utoipa::path(post, path = "/v1/jobs/renew", operation_id = "job_renew", tag = "workers", request_body = LeaseRenewal,
    responses((status = 200, body = RenewedLeases), CommonResponses))]
async fn renew(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    BatchJson(body): BatchJson<LeaseRenewal>,
) -> ApiResult<Json<RenewedLeases>> {
    let owner = LeaseOwner::new(&body.worker, caller.0.id)?;
    let claims = body.claims.iter().map(|claim| JobRef {
        job: claim.id,
        token: claim.token,
    });
    let claims: Vec<JobRef> = claims.collect();
    let lease = Duration::from_millis(body.lease_ms);
    let leases = ops::claim::renew(&*state.store, &owner, &claims, lease).await?;
    Ok(Json(RenewedLeases {
        held: leases.renewed,
        busy: leases.busy,
    }))
}

/// Finishes claimed jobs, each with its outcome.
#[utoipa::path(post, path = "/v1/jobs/finish", operation_id = "job_finish", tag = "workers", request_body = FinishBatch,
    responses((status = 200, body = FinishResults), CommonResponses))]
async fn finish(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    BatchJson(body): BatchJson<FinishBatch>,
) -> ApiResult<Json<FinishResults>> {
    let owner = LeaseOwner::new(&body.worker, caller.0.id)?;
    let finishes = body.finishes.into_iter().enumerate();
    let finishes: Vec<JobFinish> = finishes
        .map(|(index, finish)| convert::finish(&format!("/finishes/{index}"), finish))
        .collect::<ApiResult<_>>()?;
    let _turn = state.large_changes.permit(finishes.len()).await;
    let ends = ops::claim::finish(&*state.store, &owner, &finishes).await?;
    let ids = finishes.iter().map(|finish| finish.claim.job);
    let finished = ids.zip(ends).map(|(id, end)| convert::finished(id, end));
    Ok(Json(FinishResults {
        finished: finished.collect(),
    }))
}

/// Stores a worker's progress report. If the response says the lease is not held, it is lost: stop the work and discard its result.
#[utoipa::path(post, path = "/v1/jobs/progress", operation_id = "job_progress", tag = "workers", request_body = ProgressReport,
    responses((status = 200, body = LeaseStatus), CommonResponses))]
async fn progress(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Json(body): Json<ProgressReport>,
) -> ApiResult<Json<LeaseStatus>> {
    let owner = LeaseOwner::new(&body.worker, caller.0.id)?;
    let claim = JobRef {
        job: body.id,
        token: body.token,
    };
    let quotas = &state.job_quotas;
    let held = ops::claim::progress(
        &*state.store,
        quotas,
        &caller.0,
        &owner,
        claim,
        &body.progress,
    );
    let held = held.await?;
    Ok(Json(LeaseStatus { held }))
}
