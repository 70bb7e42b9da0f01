//! Versions of definitions: publish, list and show them. A version never changes.

use super::convert_requests as convert;
use crate::access::Access;
use crate::api_error::{ApiError, ApiResult};
use crate::body::{BatchJson, Json};
use crate::openapi::{CommonResponses, NotFoundResponse};
use crate::params::{Paging, Path, Query, page_response};
use crate::route::Routes;
use crate::state::State;
use axum::extract::State as AxumState;
use axum::http::StatusCode;
use leasehold_api::Page;
use leasehold_api::definition::{NewVersion, Version};
use leasehold_core::{DefinitionId, VersionId, WorkspaceId};
use leasehold_ops as ops;
use leasehold_store as store;
use std::sync::Arc;
use std::time::Duration;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .add(routes!(list), Access::Workspace)
        .add(routes!(publish), Access::Workspace)
        .add(routes!(get), Access::Workspace)
}

/// Lists the versions of a definition, by number.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/definitions/{definition}/versions", operation_id = "version_list",
    tag = "definitions", params(("workspace" = uuid::Uuid, Path), ("definition" = uuid::Uuid, Path), Paging),
    responses((status = 200, body = Page<Version>), CommonResponses, NotFoundResponse))]
async fn list(
    AxumState(state): AxumState<State>,
    Path((workspace, definition)): Path<(WorkspaceId, DefinitionId)>,
    Query(paging): Query<Paging>,
) -> ApiResult<Json<Page<Version>>> {
    let page = paging.page()?;
    let limit = page.limit;
    let versions = state
        .store
        .version_list(workspace, definition, page)
        .await?;
    if versions.is_empty() {
        let found = state.store.definition_get(workspace, definition).await?;
        found.ok_or_else(|| ApiError::not_found("definition"))?;
    }
    let next = |version: &store::definition::Version| version.number.to_string();
    Ok(Json(page_response(versions, limit, next, convert::version)))
}

/// Publishes the next version. New requests run it; requests already enqueued keep their version.
#[utoipa::path(post, path = "/v1/workspaces/{workspace}/definitions/{definition}/versions", operation_id = "version_publish",
    tag = "definitions", params(("workspace" = uuid::Uuid, Path), ("definition" = uuid::Uuid, Path)), request_body = NewVersion,
    responses((status = 201, body = Version), CommonResponses, NotFoundResponse))]
async fn publish(
    AxumState(state): AxumState<State>,
    Path((workspace, definition)): Path<(WorkspaceId, DefinitionId)>,
    BatchJson(new): BatchJson<NewVersion>,
) -> ApiResult<(StatusCode, Json<Version>)> {
    let new = store::definition::NewVersion {
        id: store::fresh_id(),
        workspace,
        definition,
        body: new.body,
        params_schema: new.params_schema,
        execution_timeout: new.execution_timeout_ms.map(Duration::from_millis),
    };
    let published = ops::publish(&*state.store, &new).await?;
    Ok((StatusCode::CREATED, Json(convert::version(published))))
}

/// Returns a version, also of a deleted definition.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/versions/{version}", operation_id = "version_get", tag = "definitions",
    params(("workspace" = uuid::Uuid, Path), ("version" = uuid::Uuid, Path)),
    responses((status = 200, body = Version), CommonResponses, NotFoundResponse))]
async fn get(
    AxumState(state): AxumState<State>,
    Path((workspace, id)): Path<(WorkspaceId, VersionId)>,
) -> ApiResult<Json<Version>> {
    let found = state.store.version_get(workspace, id).await?;
    let version = found.ok_or_else(|| ApiError::not_found("version"))?;
    Ok(Json(convert::version(Arc::unwrap_or_clone(version))))
}
