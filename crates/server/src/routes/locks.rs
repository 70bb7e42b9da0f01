//! Lists the instances that use the store and the named locks they hold.

use super::convert_jobs as convert;
use crate::access::Access;
use crate::api_error::ApiResult;
use crate::body::Json;
use crate::openapi::CommonResponses;
use crate::route::Routes;
use crate::state::State;
use axum::extract::State as AxumState;
use leasehold_api::instance::{Instances, Locks};
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .add(routes!(locks), Access::Admin)
        .add(routes!(instances), Access::Admin)
}

/// Lists all named locks.
#[utoipa::path(get, path = "/v1/locks", operation_id = "lock_list", tag = "instances",
    responses((status = 200, body = Locks), CommonResponses))]
async fn locks(AxumState(state): AxumState<State>) -> ApiResult<Json<Locks>> {
    let locks = state.store.lock_list().await?;
    let now = state.store.now().await?;
    let locks = locks
        .into_iter()
        .map(|lock| convert::lock(lock, now))
        .collect();
    Ok(Json(Locks { locks }))
}

/// Lists all instances that use the store.
#[utoipa::path(get, path = "/v1/instances", operation_id = "instance_list", tag = "instances",
    responses((status = 200, body = Instances), CommonResponses))]
async fn instances(AxumState(state): AxumState<State>) -> ApiResult<Json<Instances>> {
    let instances = state.store.instance_list().await?;
    let instances = instances.into_iter().map(convert::instance).collect();
    Ok(Json(Instances { instances }))
}
