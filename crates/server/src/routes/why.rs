//! Why a request is not running now.

use super::shown_requests as shown;
use crate::access::Access;
use crate::body::Json;
use crate::openapi::{Common, Unknown};
use crate::params::Path;
use crate::refusal::{Outcome, Refusal};
use crate::route::Routes;
use crate::state::State;
use axum::extract::State as Reached;
use leasehold_api::why::Why;
use leasehold_core::{RequestId, WorkspaceId};
use leasehold_ops as ops;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default().add(routes!(why), Access::Workspace)
}

/// Why a request is not running now: what holds it, what else would, its place in line and when it may begin.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/requests/{request}/why", operation_id = "request_why", tag = "requests",
    params(("workspace" = uuid::Uuid, Path), ("request" = uuid::Uuid, Path)),
    responses((status = 200, body = Why), Common, Unknown))]
async fn why(
    Reached(state): Reached<State>,
    Path((workspace, id)): Path<(WorkspaceId, RequestId)>,
) -> Outcome<Json<Why>> {
    let (engine, facts) = (state.engine.as_deref(), state.watch.facts());
    let found = ops::why::explain(&*state.store, engine, facts, workspace, id).await?;
    let why = found.ok_or_else(Refusal::not_found)?;
    Ok(Json(shown::why(why)))
}
