//! Definitions: making, showing and deleting them.

use super::shown_requests as shown;
use super::workspaces::known;
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
use leasehold_api::definition::{Definition, NewDefinition};
use leasehold_core::{DefinitionId, WorkspaceId};
use leasehold_ops as ops;
use leasehold_store as store;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .add(routes!(list), Access::Workspace)
        .add(routes!(create), Access::Workspace)
        .add(routes!(get), Access::Workspace)
        .add(routes!(delete), Access::Workspace)
}

/// The definitions of a workspace, or the one of a name.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/definitions", operation_id = "definition_list", tag = "definitions",
    params(("workspace" = uuid::Uuid, Path), Named), responses((status = 200, body = Page<Definition>), Common, Unknown))]
async fn list(
    Reached(state): Reached<State>,
    Path(workspace): Path<WorkspaceId>,
    Query(wanted): Query<Named>,
) -> Outcome<Json<Page<Definition>>> {
    let (page, name) = wanted.page()?;
    if let Some(name) = name {
        let found = ops::definition::find(&*state.store, workspace, &name).await?;
        if found.is_none() {
            known(&state, workspace).await?;
        }
        return Ok(Json(answered_alone(found, shown::definition)));
    }
    let limit = page.limit;
    let definitions = state.store.definition_list(workspace, page).await?;
    if definitions.is_empty() {
        known(&state, workspace).await?;
    }
    let next = |definition: &store::definition::Definition| definition.id.to_string();
    Ok(Json(answered(definitions, limit, next, shown::definition)))
}

/// Makes a definition. It can be run once a version of it is published.
#[utoipa::path(post, path = "/v1/workspaces/{workspace}/definitions", operation_id = "definition_create", tag = "definitions",
    params(("workspace" = uuid::Uuid, Path)), request_body = NewDefinition,
    responses((status = 201, body = Definition), Common, Unknown, Conflict))]
async fn create(
    Reached(state): Reached<State>,
    Path(workspace): Path<WorkspaceId>,
    Json(new): Json<NewDefinition>,
) -> Outcome<(StatusCode, Json<Definition>)> {
    let new = store::definition::NewDefinition {
        id: store::fresh_id(),
        workspace,
        name: new.name,
    };
    let made = ops::definition::create(&*state.store, &new).await?;
    Ok((StatusCode::CREATED, Json(shown::definition(made))))
}

/// A definition.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/definitions/{definition}", operation_id = "definition_get",
    tag = "definitions", params(("workspace" = uuid::Uuid, Path), ("definition" = uuid::Uuid, Path)),
    responses((status = 200, body = Definition), Common, Unknown))]
async fn get(
    Reached(state): Reached<State>,
    Path((workspace, id)): Path<(WorkspaceId, DefinitionId)>,
) -> Outcome<Json<Definition>> {
    let found = state.store.definition_get(workspace, id).await?;
    let definition = found.ok_or_else(Refusal::not_found)?;
    Ok(Json(shown::definition(definition)))
}

/// Deletes a definition: what waits of it fails when its turn comes, what runs runs on.
#[utoipa::path(delete, path = "/v1/workspaces/{workspace}/definitions/{definition}", operation_id = "definition_delete",
    tag = "definitions", params(("workspace" = uuid::Uuid, Path), ("definition" = uuid::Uuid, Path)),
    responses((status = 204), Common, Unknown))]
async fn delete(
    Reached(state): Reached<State>,
    Path((workspace, id)): Path<(WorkspaceId, DefinitionId)>,
) -> Outcome<StatusCode> {
    ops::definition::delete(&*state.store, workspace, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
