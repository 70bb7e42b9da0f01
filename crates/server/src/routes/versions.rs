//! Versions of definitions: publish, list and show them. A version never changes.

use super::convert_requests as convert;
use crate::access::{Access, Caller};
use crate::api_error::{ApiError, ApiResult};
use crate::body::{GraphJson, Json};
use crate::call_memory;
use crate::lists::{JsonPage, RowMaxBytes};
use crate::openapi::{CommonResponses, NotFoundResponse};
use crate::params::{Paging, Path, Query};
use crate::route::{RoutePolicy, Routes};
use crate::state::State;
use axum::Extension;
use axum::extract::State as AxumState;
use axum::http::StatusCode;
use futures::future::BoxFuture;
use leasehold_api::definition::{NewVersion, Version};
use leasehold_api::{Code, Page};
use leasehold_core::limits::{GRAPH_MAX_BYTES, SCHEMA_MAX_BYTES};
use leasehold_core::{DefinitionId, VersionId, WorkspaceId};
use leasehold_ops as ops;
use leasehold_store as store;
use leasehold_store::definition::{Publisher, VersionRecord};
use std::time::Duration;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .add(routes!(list), Access::Workspace)
        // A graph receives params and outputs, and its `http` nodes send them anywhere.
        .add(
            routes!(publish),
            RoutePolicy::from(Access::Workspace).needs_payloads(),
        )
        .add(routes!(get), Access::Workspace)
}

/// Lists the versions of a definition, by number. A page ends early when it is large.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/definitions/{definition}/versions", operation_id = "version_list",
    tag = "definitions", params(("workspace" = uuid::Uuid, Path), ("definition" = uuid::Uuid, Path), Paging),
    responses((status = 200, body = Page<Version>), CommonResponses, NotFoundResponse))]
async fn list(
    AxumState(state): AxumState<State>,
    Path((workspace, definition)): Path<(WorkspaceId, DefinitionId)>,
    Query(paging): Query<Paging>,
) -> ApiResult<JsonPage> {
    let cursors = state.cursors.of("version_list", Some(workspace)).await?;
    let within = definition.to_string();
    let cursors = cursors.within(&within);
    let page = paging.page(&cursors)?;
    let store = state.store.clone();
    let read = move |page| -> BoxFuture<'static, store::Result<Vec<VersionRecord>>> {
        let store = store.clone();
        Box::pin(async move { store.version_list(workspace, definition, page).await })
    };
    let key = |version: &VersionRecord| version.number;
    let listed = state
        .lists
        .page(
            page,
            &cursors,
            RowMaxBytes::VERSION,
            read,
            key,
            convert::version,
        )
        .await?;
    if listed.0.items.is_empty() {
        let found = state.store.definition_get(workspace, definition).await?;
        found.ok_or_else(|| ApiError::not_found("definition"))?;
    }
    Ok(listed)
}

fn to_json(version: &store::definition::Version) -> ApiResult<Json<convert::VersionJson>> {
    let record = VersionRecord::try_from(version).map_err(|error| {
        tracing::error!(%error, version = %version.id, "failed to serialize a version as JSON");
        ApiError::new(Code::Internal, "internal error; see the server's log")
    })?;
    Ok(Json(convert::version(record)))
}

/// Publishes the next version. New requests run it; requests already enqueued keep their version. Unknown queues that the graph names are created: for
/// the workspace, or, with an administrator's key, for the installation and shared with the workspace.
#[utoipa::path(post, path = "/v1/workspaces/{workspace}/definitions/{definition}/versions", operation_id = "version_publish",
    tag = "definitions", params(("workspace" = uuid::Uuid, Path), ("definition" = uuid::Uuid, Path)), request_body = NewVersion,
    responses((status = 201, body = Version), CommonResponses, NotFoundResponse))]
async fn publish(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Path((workspace, definition)): Path<(WorkspaceId, DefinitionId)>,
    GraphJson(new): GraphJson<NewVersion>,
) -> ApiResult<(StatusCode, Json<convert::VersionJson>)> {
    let new = store::definition::NewVersion {
        id: store::fresh_id(),
        workspace,
        definition,
        body: new.body,
        params_schema: new.params_schema,
        execution_timeout: new.execution_timeout_ms.map(Duration::from_millis),
        publisher: match caller.is_admin() {
            true => Publisher::Administrator,
            false => Publisher::Workspace,
        },
    };
    call_memory::reserve(GRAPH_MAX_BYTES + SCHEMA_MAX_BYTES).await?;
    let schemas = state.enqueuer.schemas();
    let published = ops::publish(&*state.store, schemas, new, &caller.actor()).await?;
    Ok((StatusCode::CREATED, to_json(&published)?))
}

/// Returns a version, also of a deleted definition.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/versions/{version}", operation_id = "version_get", tag = "definitions",
    params(("workspace" = uuid::Uuid, Path), ("version" = uuid::Uuid, Path)),
    responses((status = 200, body = Version), CommonResponses, NotFoundResponse))]
async fn get(
    AxumState(state): AxumState<State>,
    Path((workspace, id)): Path<(WorkspaceId, VersionId)>,
) -> ApiResult<Json<convert::VersionJson>> {
    call_memory::reserve(GRAPH_MAX_BYTES + SCHEMA_MAX_BYTES).await?;
    let found = state.store.version_get(workspace, id).await?;
    let version = found.ok_or_else(|| ApiError::not_found("version"))?;
    to_json(&version)
}
