//! What is wrong with this installation, as far as it can tell itself.

use crate::access::Access;
use crate::body::Json;
use crate::openapi::Common;
use crate::refusal::Outcome;
use crate::route::Routes;
use crate::state::State;
use axum::extract::State as Reached;
use leasehold_api::doctor::Findings;
use leasehold_core::Timestamp;
use leasehold_ops::doctor;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default().add(routes!(examine), Access::Admin)
}

/// Examines database, clocks, engine, locks and drift, and says what to do about what is wrong. Repairs nothing.
#[utoipa::path(get, path = "/v1/doctor", operation_id = "doctor", tag = "instances",
    responses((status = 200, body = Findings), Common))]
async fn examine(Reached(state): Reached<State>) -> Outcome<Json<Findings>> {
    let found = doctor::examine(&*state.store, state.engine.as_deref(), Timestamp::now).await;
    Ok(Json(Findings {
        findings: found.into_iter().map(Into::into).collect(),
    }))
}
