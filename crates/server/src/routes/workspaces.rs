//! Workspaces: create, list, show, change and delete them.

use super::convert;
use crate::access::{Access, Caller};
use crate::api_error::{ApiError, ApiResult};
use crate::body::Json;
use crate::openapi::{CommonResponses, ConflictResponse, NotFoundResponse};
use crate::params::{NameFilter, Path, Query, page_response, single_page};
use crate::route::Routes;
use crate::state::State;
use axum::Extension;
use axum::extract::State as AxumState;
use axum::http::StatusCode;
use leasehold_api::Page;
use leasehold_api::workspace::{NewWorkspace, Workspace, WorkspaceChange, WorkspaceState};
use leasehold_core::WorkspaceId;
use leasehold_ops as ops;
use leasehold_store as store;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .add(routes!(list), Access::Admin)
        .add(routes!(create), Access::Admin)
        .add(routes!(get), Access::Workspace)
        .add(routes!(update), Access::Admin)
        .add(routes!(delete), Access::Admin)
}

/// Lists all workspaces, or the one with a name.
#[utoipa::path(get, path = "/v1/workspaces", tag = "workspaces", params(NameFilter),
    responses((status = 200, body = Page<Workspace>), CommonResponses))]
async fn list(
    AxumState(state): AxumState<State>,
    Query(filter): Query<NameFilter>,
) -> ApiResult<Json<Page<Workspace>>> {
    let cursors = state.cursors.of("workspace_list", None).await?;
    let (page, name) = filter.page(&cursors)?;
    if let Some(name) = name {
        let found = ops::workspace::find(&*state.store, &name).await?;
        return Ok(Json(single_page(found, convert::workspace)));
    }
    let limit = page.limit;
    let workspaces = state.store.workspace_list(page).await?;
    let next = |workspace: &store::workspace::Workspace| workspace.id.to_string();
    Ok(Json(page_response(
        workspaces,
        limit,
        &cursors,
        next,
        convert::workspace,
    )))
}

/// Creates a workspace.
#[utoipa::path(post, path = "/v1/workspaces", tag = "workspaces", request_body = NewWorkspace,
    responses((status = 201, body = Workspace), CommonResponses, ConflictResponse))]
async fn create(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Json(new): Json<NewWorkspace>,
) -> ApiResult<(StatusCode, Json<Workspace>)> {
    let new = store::workspace::NewWorkspace {
        id: store::fresh_id(),
        name: new.name,
        plan: new.plan,
        limit_override: new.max_concurrent_executions,
    };
    let created = ops::workspace::create(&*state.store, &new, &caller.actor()).await?;
    Ok((StatusCode::CREATED, Json(convert::workspace(created))))
}

/// Returns a workspace with its slots in use, its requests by status and the bytes that are open.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}", tag = "workspaces",
    params(("workspace" = uuid::Uuid, Path)), responses((status = 200, body = WorkspaceState), CommonResponses, NotFoundResponse))]
async fn get(
    AxumState(state): AxumState<State>,
    Path(id): Path<WorkspaceId>,
) -> ApiResult<Json<WorkspaceState>> {
    let found = ops::workspace::get(&*state.store, id).await?;
    let (found, quota) = found.ok_or_else(|| ApiError::not_found("workspace"))?;
    let mut state = convert::workspace_state(found);
    state.open_bytes = Some(quota.used.bytes);
    Ok(Json(state))
}

/// Changes the plan or limits of a workspace, pauses or resumes it. Running executions above a lower limit finish.
#[utoipa::path(patch, path = "/v1/workspaces/{workspace}", tag = "workspaces", request_body = WorkspaceChange,
    params(("workspace" = uuid::Uuid, Path)), responses((status = 200, body = Workspace), CommonResponses, NotFoundResponse))]
async fn update(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<WorkspaceId>,
    Json(change): Json<WorkspaceChange>,
) -> ApiResult<Json<Workspace>> {
    let change = store::workspace::WorkspaceChange {
        plan: change.plan,
        limit_override: change.max_concurrent_executions,
        max_pending_override: change.max_pending,
        max_open_bytes_override: change.max_open_bytes,
        paused: change.paused,
    };
    let changed = ops::workspace::update(&*state.store, id, &change, &caller.actor()).await?;
    Ok(Json(convert::workspace(changed)))
}

/// Deletes a workspace. Its keys are rejected: at once on this instance, within a second on the others. Pending requests fail when they are admitted, running executions continue.
#[utoipa::path(delete, path = "/v1/workspaces/{workspace}", tag = "workspaces",
    params(("workspace" = uuid::Uuid, Path)), responses((status = 204), CommonResponses, NotFoundResponse))]
async fn delete(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<WorkspaceId>,
) -> ApiResult<StatusCode> {
    ops::workspace::delete(&*state.store, id, &caller.actor()).await?;
    state.keys.invalidate_workspace(id);
    Ok(StatusCode::NO_CONTENT)
}

/// Returns not found unless the workspace exists or existed: its lists may be empty, those of an unknown workspace are not found.
pub(super) async fn ensure_workspace_exists(state: &State, id: WorkspaceId) -> ApiResult<()> {
    let workspace = state.store.workspace_get(id).await?;
    workspace
        .map(drop)
        .ok_or_else(|| ApiError::not_found("workspace"))
}
