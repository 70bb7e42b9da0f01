//! What instances serve the store, and which named locks they hold.

use super::shown_jobs as shown;
use crate::access::Access;
use crate::body::Json;
use crate::openapi::Common;
use crate::refusal::Outcome;
use crate::route::Routes;
use crate::state::State;
use axum::extract::State as Reached;
use leasehold_api::instance::{Instances, Locks};
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .add(routes!(locks), Access::Admin)
        .add(routes!(instances), Access::Admin)
}

/// Every named lock.
#[utoipa::path(get, path = "/v1/locks", operation_id = "lock_list", tag = "instances",
    responses((status = 200, body = Locks), Common))]
async fn locks(Reached(state): Reached<State>) -> Outcome<Json<Locks>> {
    let locks = state.store.lock_list().await?;
    let now = state.store.now().await?;
    let locks = locks
        .into_iter()
        .map(|lock| shown::lock(lock, now))
        .collect();
    Ok(Json(Locks { locks }))
}

/// Every instance that serves the store.
#[utoipa::path(get, path = "/v1/instances", operation_id = "instance_list", tag = "instances",
    responses((status = 200, body = Instances), Common))]
async fn instances(Reached(state): Reached<State>) -> Outcome<Json<Instances>> {
    let instances = state.store.instance_list().await?;
    let instances = instances.into_iter().map(shown::instance).collect();
    Ok(Json(Instances { instances }))
}
