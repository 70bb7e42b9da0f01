//! Definitions: create, list, show and delete them.

use super::convert_requests as convert;
use super::workspaces::ensure_workspace_exists;
use crate::access::{Access, Caller};
use crate::api_error::{ApiError, ApiResult};
use crate::body::Json;
use crate::call_memory::{self, rows_bytes};
use crate::openapi::{CommonResponses, ConflictResponse, NotFoundResponse};
use crate::params::{NameFilter, Path, Query, page_response, single_page};
use crate::route::Routes;
use crate::state::State;
use axum::Extension;
use axum::extract::State as AxumState;
use axum::http::StatusCode;
use leasehold_api::Page;
use leasehold_api::definition::{Definition, NewDefinition};
use leasehold_core::limits::NAME_MAX_CHARS;
use leasehold_core::{DefinitionId, WorkspaceId};
use leasehold_ops as ops;
use leasehold_store as store;
use utoipa_axum::routes;

/// Bytes of a definition in a list at most: its name and its ids.
const DEFINITION_MAX_BYTES: usize = 4 * NAME_MAX_CHARS + 300;

pub(super) fn routes() -> Routes {
    Routes::default()
        .add(routes!(list), Access::Workspace)
        .add(routes!(create), Access::Workspace)
        .add(routes!(get), Access::Workspace)
        .add(routes!(delete), Access::Workspace)
}

/// Lists the definitions of a workspace, or the one with a name.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/definitions", operation_id = "definition_list", tag = "definitions",
    params(("workspace" = uuid::Uuid, Path), NameFilter), responses((status = 200, body = Page<Definition>), CommonResponses, NotFoundResponse))]
async fn list(
    AxumState(state): AxumState<State>,
    Path(workspace): Path<WorkspaceId>,
    Query(filter): Query<NameFilter>,
) -> ApiResult<Json<Page<Definition>>> {
    let cursors = state.cursors.of("definition_list", Some(workspace)).await?;
    let (page, name) = filter.page(&cursors)?;
    if let Some(name) = name {
        let found = ops::definition::find(&*state.store, workspace, &name).await?;
        if found.is_none() {
            ensure_workspace_exists(&state, workspace).await?;
        }
        return Ok(Json(single_page(found, convert::definition)));
    }
    let limit = page.limit;
    call_memory::reserve(rows_bytes(limit, DEFINITION_MAX_BYTES)).await?;
    let definitions = state.store.definition_list(workspace, page).await?;
    if definitions.is_empty() {
        ensure_workspace_exists(&state, workspace).await?;
    }
    let next = |definition: &store::definition::Definition| definition.id.to_string();
    Ok(Json(page_response(
        definitions,
        limit,
        &cursors,
        next,
        convert::definition,
    )))
}

/// Creates a definition. It can run once a version is published.
#[utoipa::path(post, path = "/v1/workspaces/{workspace}/definitions", operation_id = "definition_create", tag = "definitions",
    params(("workspace" = uuid::Uuid, Path)), request_body = NewDefinition,
    responses((status = 201, body = Definition), CommonResponses, NotFoundResponse, ConflictResponse))]
async fn create(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Path(workspace): Path<WorkspaceId>,
    Json(new): Json<NewDefinition>,
) -> ApiResult<(StatusCode, Json<Definition>)> {
    let new = store::definition::NewDefinition {
        id: store::fresh_id(),
        workspace,
        name: new.name,
    };
    let created = ops::definition::create(&*state.store, &new, &caller.actor()).await?;
    Ok((StatusCode::CREATED, Json(convert::definition(created))))
}

/// Returns a definition.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/definitions/{definition}", operation_id = "definition_get",
    tag = "definitions", params(("workspace" = uuid::Uuid, Path), ("definition" = uuid::Uuid, Path)),
    responses((status = 200, body = Definition), CommonResponses, NotFoundResponse))]
async fn get(
    AxumState(state): AxumState<State>,
    Path((workspace, id)): Path<(WorkspaceId, DefinitionId)>,
) -> ApiResult<Json<Definition>> {
    let found = state.store.definition_get(workspace, id).await?;
    let definition = found.ok_or_else(|| ApiError::not_found("definition"))?;
    Ok(Json(convert::definition(definition)))
}

/// Deletes a definition. Its pending requests fail when they are admitted; running executions continue.
#[utoipa::path(delete, path = "/v1/workspaces/{workspace}/definitions/{definition}", operation_id = "definition_delete",
    tag = "definitions", params(("workspace" = uuid::Uuid, Path), ("definition" = uuid::Uuid, Path)),
    responses((status = 204), CommonResponses, NotFoundResponse))]
async fn delete(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Path((workspace, id)): Path<(WorkspaceId, DefinitionId)>,
) -> ApiResult<StatusCode> {
    ops::definition::delete(&*state.store, workspace, id, &caller.actor()).await?;
    Ok(StatusCode::NO_CONTENT)
}
