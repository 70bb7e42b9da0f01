//! Checks this installation for problems.

use crate::access::Access;
use crate::api_error::ApiResult;
use crate::body::Json;
use crate::openapi::CommonResponses;
use crate::route::Routes;
use crate::state::State;
use axum::extract::State as AxumState;
use leasehold_api::doctor::Findings;
use leasehold_core::Timestamp;
use leasehold_ops::doctor;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default().add(routes!(examine), Access::Admin)
}

/// Checks database, clocks, engine, locks and drift, and recommends what to do. Repairs nothing.
#[utoipa::path(get, path = "/v1/doctor", operation_id = "doctor", tag = "instances",
    responses((status = 200, body = Findings), CommonResponses))]
async fn examine(AxumState(state): AxumState<State>) -> ApiResult<Json<Findings>> {
    let found = doctor::examine(&*state.store, state.engine.as_deref(), Timestamp::now).await;
    Ok(Json(Findings {
        findings: found.into_iter().map(Into::into).collect(),
    }))
}
