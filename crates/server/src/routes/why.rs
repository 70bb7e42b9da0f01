//! Explains why a request is not running.

use super::convert_requests as convert;
use crate::access::{Access, Caller};
use crate::api_error::{ApiError, ApiResult};
use crate::body::Json;
use crate::openapi::{CommonResponses, NotFoundResponse};
use crate::params::Path;
use crate::route::Routes;
use crate::state::State;
use axum::Extension;
use axum::extract::State as AxumState;
use leasehold_api::why::Why;
use leasehold_core::{RequestId, WorkspaceId};
use leasehold_ops as ops;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default().add(routes!(why), Access::Workspace)
}

/// Explains why a request is not running: the blocking reason, further reasons, its position in line and its estimated start.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/requests/{request}/why", operation_id = "request_why", tag = "requests",
    params(("workspace" = uuid::Uuid, Path), ("request" = uuid::Uuid, Path)),
    responses((status = 200, body = Why), CommonResponses, NotFoundResponse))]
async fn why(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Path((workspace, id)): Path<(WorkspaceId, RequestId)>,
) -> ApiResult<Json<Why>> {
    let (engine, facts) = (state.engine.as_deref(), state.watch.facts());
    let found = ops::why::explain(&*state.store, engine, facts, workspace, id).await?;
    let why = found.ok_or_else(|| ApiError::not_found("request"))?;
    Ok(Json(convert::why(why, &caller)))
}
