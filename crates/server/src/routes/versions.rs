//! Versions of definitions: publishing and showing them. They never change.

use super::shown_requests as shown;
use crate::access::Access;
use crate::body::{Batch, Json};
use crate::openapi::{Common, Unknown};
use crate::params::{Paging, Path, Query, answered};
use crate::refusal::{Outcome, Refusal};
use crate::route::Routes;
use crate::state::State;
use axum::extract::State as Reached;
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

/// The versions of a definition, by number.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/definitions/{definition}/versions", operation_id = "version_list",
    tag = "definitions", params(("workspace" = uuid::Uuid, Path), ("definition" = uuid::Uuid, Path), Paging),
    responses((status = 200, body = Page<Version>), Common, Unknown))]
async fn list(
    Reached(state): Reached<State>,
    Path((workspace, definition)): Path<(WorkspaceId, DefinitionId)>,
    Query(paging): Query<Paging>,
) -> Outcome<Json<Page<Version>>> {
    let page = paging.page()?;
    let limit = page.limit;
    let versions = state
        .store
        .version_list(workspace, definition, page)
        .await?;
    if versions.is_empty() {
        let found = state.store.definition_get(workspace, definition).await?;
        found.ok_or_else(Refusal::not_found)?;
    }
    let next = |version: &store::definition::Version| version.number.to_string();
    Ok(Json(answered(versions, limit, next, shown::version)))
}

/// Publishes the next version: requests that are enqueued from now on run it, those that wait run theirs.
#[utoipa::path(post, path = "/v1/workspaces/{workspace}/definitions/{definition}/versions", operation_id = "version_publish",
    tag = "definitions", params(("workspace" = uuid::Uuid, Path), ("definition" = uuid::Uuid, Path)), request_body = NewVersion,
    responses((status = 201, body = Version), Common, Unknown))]
async fn publish(
    Reached(state): Reached<State>,
    Path((workspace, definition)): Path<(WorkspaceId, DefinitionId)>,
    Batch(new): Batch<NewVersion>,
) -> Outcome<(StatusCode, Json<Version>)> {
    let new = store::definition::NewVersion {
        id: store::fresh_id(),
        workspace,
        definition,
        body: new.body,
        params_schema: new.params_schema,
        execution_timeout: new.execution_timeout_ms.map(Duration::from_millis),
    };
    let published = ops::publish(&*state.store, &new).await?;
    Ok((StatusCode::CREATED, Json(shown::version(published))))
}

/// A version, also of a deleted definition.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/versions/{version}", operation_id = "version_get", tag = "definitions",
    params(("workspace" = uuid::Uuid, Path), ("version" = uuid::Uuid, Path)),
    responses((status = 200, body = Version), Common, Unknown))]
async fn get(
    Reached(state): Reached<State>,
    Path((workspace, id)): Path<(WorkspaceId, VersionId)>,
) -> Outcome<Json<Version>> {
    let found = state.store.version_get(workspace, id).await?;
    let version = found.ok_or_else(Refusal::not_found)?;
    Ok(Json(shown::version(Arc::unwrap_or_clone(version))))
}
