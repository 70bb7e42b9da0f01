//! Executions: list and show them, and report that one has ended.

use super::convert_requests as convert;
use super::nodes;
use super::workspaces::ensure_workspace_exists;
use crate::access::Access;
use crate::api_error::{ApiError, ApiResult};
use crate::body::Json;
use crate::openapi::{CommonResponses, NotFoundResponse};
use crate::params::{Path, Query, page_response, to_page_query};
use crate::route::Routes;
use crate::state::State;
use axum::extract::State as AxumState;
use axum::http::StatusCode;
use leasehold_api::Page;
use leasehold_api::execution::{Execution, ExecutionGraph, ExecutionNode, ExecutionStatusName};
use leasehold_core::{
    DefinitionId, ExecutionId, ExecutionStatus, Version, VersionBody, WorkspaceId,
};
use leasehold_ops as ops;
use leasehold_store as store;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .add(routes!(list), Access::Workspace)
        .add(routes!(get), Access::Workspace)
        .add(routes!(find), Access::Admin)
        .add(routes!(graph), Access::Workspace)
        .add(routes!(node), Access::Workspace)
        .add(routes!(ended), Access::Jobs)
}

/// Filters executions.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ExecutionListQuery {
    /// Only executions in this status. RUNNING executions hold a slot.
    #[param(value_type = Option<ExecutionStatusName>)]
    status: Option<ExecutionStatus>,
    /// Only executions of this definition.
    #[param(value_type = Option<uuid::Uuid>)]
    definition: Option<DefinitionId>,
    /// Cursor: the `next` of the previous page.
    #[param(value_type = Option<i64>)]
    after: Option<String>,
    /// Maximum number of items. Default: 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// Lists the executions of a workspace, last admitted first.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/executions", operation_id = "execution_list", tag = "executions",
    params(("workspace" = uuid::Uuid, Path), ExecutionListQuery), responses((status = 200, body = Page<Execution>), CommonResponses, NotFoundResponse))]
async fn list(
    AxumState(state): AxumState<State>,
    Path(workspace): Path<WorkspaceId>,
    Query(query): Query<ExecutionListQuery>,
) -> ApiResult<Json<Page<Execution>>> {
    let page = to_page_query(query.after.as_deref(), query.limit)?;
    let limit = page.limit;
    let filter = store::execution::ExecutionFilter {
        workspace,
        status: query.status,
        definition: query.definition,
    };
    let executions = state.store.execution_list(&filter, page).await?;
    if executions.is_empty() {
        ensure_workspace_exists(&state, workspace).await?;
    }
    let next = |execution: &store::execution::Execution| execution.admission.to_string();
    Ok(Json(page_response(
        executions,
        limit,
        next,
        convert::execution,
    )))
}

/// Returns an execution.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/executions/{execution}", operation_id = "execution_get",
    tag = "executions", params(("workspace" = uuid::Uuid, Path), ("execution" = uuid::Uuid, Path)),
    responses((status = 200, body = Execution), CommonResponses, NotFoundResponse))]
async fn get(
    AxumState(state): AxumState<State>,
    Path((workspace, id)): Path<(WorkspaceId, ExecutionId)>,
) -> ApiResult<Json<Execution>> {
    let execution = find_execution(&state, workspace, id).await?;
    Ok(Json(convert::execution(execution)))
}

/// Returns an execution of any workspace.
#[utoipa::path(get, path = "/v1/executions/{execution}", operation_id = "execution_find", tag = "executions",
    params(("execution" = uuid::Uuid, Path)), responses((status = 200, body = Execution), CommonResponses, NotFoundResponse))]
async fn find(
    AxumState(state): AxumState<State>,
    Path(id): Path<ExecutionId>,
) -> ApiResult<Json<Execution>> {
    let found = state.store.execution_find(id).await?;
    let execution = found.ok_or_else(|| ApiError::not_found("execution"))?;
    Ok(Json(convert::execution(execution)))
}

/// Returns an execution's graph with the state, attempts and output of each node.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/executions/{execution}/graph", operation_id = "execution_graph",
    tag = "executions", params(("workspace" = uuid::Uuid, Path), ("execution" = uuid::Uuid, Path)),
    responses((status = 200, body = ExecutionGraph), CommonResponses, NotFoundResponse))]
async fn graph(
    AxumState(state): AxumState<State>,
    Path((workspace, id)): Path<(WorkspaceId, ExecutionId)>,
) -> ApiResult<Json<ExecutionGraph>> {
    let (execution, version) = with_version(&state, workspace, id).await?;
    let body = &version.body;
    let _permit = state.lists.permit().await;
    let nodes = match body {
        VersionBody::Graph(graph) => nodes::all(&state, id, body, graph).await?,
        VersionBody::Binding { .. } => Vec::new(),
    };
    Ok(Json(ExecutionGraph {
        execution: id,
        version: execution.version,
        nodes,
        edges: nodes::edges(body),
    }))
}

/// Returns a node of an execution with its complete output, whatever its size.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/executions/{execution}/nodes/{node}", operation_id = "execution_node",
    tag = "executions", params(("workspace" = uuid::Uuid, Path), ("execution" = uuid::Uuid, Path), ("node" = String, Path)),
    responses((status = 200, body = ExecutionNode), CommonResponses, NotFoundResponse))]
async fn node(
    AxumState(state): AxumState<State>,
    Path((workspace, id, node)): Path<(WorkspaceId, ExecutionId, String)>,
) -> ApiResult<Json<ExecutionNode>> {
    let (_, version) = with_version(&state, workspace, id).await?;
    let _permit = state.lists.permit().await;
    Ok(Json(nodes::one(&state, id, &version.body, &node).await?))
}

/// Reports that an execution has ended, so that the server checks the engine at once. The server trusts only the engine's answer.
#[utoipa::path(post, path = "/v1/executions/{execution}/ended", operation_id = "execution_ended", tag = "workers",
    params(("execution" = uuid::Uuid, Path)), responses((status = 204), CommonResponses))]
async fn ended(
    AxumState(state): AxumState<State>,
    Path(execution): Path<ExecutionId>,
) -> ApiResult<StatusCode> {
    ops::execution::report_ended(&*state.store, execution).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn find_execution(
    state: &State,
    workspace: WorkspaceId,
    id: ExecutionId,
) -> ApiResult<store::execution::Execution> {
    let found = state.store.execution_get(workspace, id).await?;
    found.ok_or_else(|| ApiError::not_found("execution"))
}

/// Returns an execution and its version.
async fn with_version(
    state: &State,
    workspace: WorkspaceId,
    id: ExecutionId,
) -> ApiResult<(store::execution::Execution, Arc<Version>)> {
    let execution = find_execution(state, workspace, id).await?;
    let version = state
        .store
        .version_get(workspace, execution.version)
        .await?;
    let version = version.ok_or_else(|| ApiError::not_found("version"))?;
    Ok((execution, version))
}
