//! Workspaces: making, showing, changing and deleting them.

use super::shown;
use crate::access::Access;
use crate::body::Json;
use crate::openapi::{Common, Conflict, Unknown};
use crate::params::{Named, Path, Query, answered, answered_alone};
use crate::refusal::{Outcome, Refusal};
use crate::route::Routes;
use crate::state::State;
use axum::extract::State as Reached;
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

/// All workspaces, or the one of a name.
#[utoipa::path(get, path = "/v1/workspaces", tag = "workspaces", params(Named),
    responses((status = 200, body = Page<Workspace>), Common))]
async fn list(
    Reached(state): Reached<State>,
    Query(wanted): Query<Named>,
) -> Outcome<Json<Page<Workspace>>> {
    let (page, name) = wanted.page()?;
    if let Some(name) = name {
        let found = ops::workspace::find(&*state.store, &name).await?;
        return Ok(Json(answered_alone(found, shown::workspace)));
    }
    let limit = page.limit;
    let workspaces = state.store.workspace_list(page).await?;
    let next = |workspace: &store::workspace::Workspace| workspace.id.to_string();
    Ok(Json(answered(workspaces, limit, next, shown::workspace)))
}

/// Makes a workspace.
#[utoipa::path(post, path = "/v1/workspaces", tag = "workspaces", request_body = NewWorkspace,
    responses((status = 201, body = Workspace), Common, Conflict))]
async fn create(
    Reached(state): Reached<State>,
    Json(new): Json<NewWorkspace>,
) -> Outcome<(StatusCode, Json<Workspace>)> {
    let new = store::workspace::NewWorkspace {
        id: store::fresh_id(),
        name: new.name,
        plan: new.plan,
        limit_override: new.max_concurrent_executions,
    };
    let made = ops::workspace::create(&*state.store, &new).await?;
    Ok((StatusCode::CREATED, Json(shown::workspace(made))))
}

/// A workspace with what it uses now.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}", tag = "workspaces",
    params(("workspace" = uuid::Uuid, Path)), responses((status = 200, body = WorkspaceState), Common, Unknown))]
async fn get(
    Reached(state): Reached<State>,
    Path(id): Path<WorkspaceId>,
) -> Outcome<Json<WorkspaceState>> {
    let found = ops::workspace::get(&*state.store, id).await?;
    let found = found.ok_or_else(Refusal::not_found)?;
    Ok(Json(shown::workspace_state(found)))
}

/// Changes its plan or its limit, pauses it or lets it go on. A lower limit lets what runs finish.
#[utoipa::path(patch, path = "/v1/workspaces/{workspace}", tag = "workspaces", request_body = WorkspaceChange,
    params(("workspace" = uuid::Uuid, Path)), responses((status = 200, body = Workspace), Common, Unknown))]
async fn update(
    Reached(state): Reached<State>,
    Path(id): Path<WorkspaceId>,
    Json(change): Json<WorkspaceChange>,
) -> Outcome<Json<Workspace>> {
    let change = store::workspace::WorkspaceChange {
        plan: change.plan,
        limit_override: change.max_concurrent_executions,
        paused: change.paused,
    };
    let changed = ops::workspace::update(&*state.store, id, &change).await?;
    Ok(Json(shown::workspace(changed)))
}

/// Deletes a workspace: nothing can be enqueued any more, what waits fails when its turn comes, what runs runs on.
#[utoipa::path(delete, path = "/v1/workspaces/{workspace}", tag = "workspaces",
    params(("workspace" = uuid::Uuid, Path)), responses((status = 204), Common, Unknown))]
async fn delete(
    Reached(state): Reached<State>,
    Path(id): Path<WorkspaceId>,
) -> Outcome<StatusCode> {
    ops::workspace::delete(&*state.store, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// That there is or was such a workspace: what is asked of another is not there, and not merely empty.
pub(super) async fn known(state: &State, id: WorkspaceId) -> Outcome<()> {
    let workspace = state.store.workspace_get(id).await?;
    workspace.map(drop).ok_or_else(Refusal::not_found)
}
