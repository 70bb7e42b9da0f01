//! Executions: list and show them, and report that one has ended.

use super::convert_requests as convert;
use super::nodes;
use super::workspaces::ensure_workspace_exists;
use crate::access::{Access, Caller};
use crate::api_error::{ApiError, ApiResult};
use crate::body::Json;
use crate::call_memory;
use crate::lists::{JsonPage, RowMaxBytes};
use crate::openapi::{CommonResponses, NotFoundResponse};
use crate::params::{Path, Query};
use crate::route::Routes;
use crate::state::State;
use axum::Extension;
use axum::extract::State as AxumState;
use axum::http::StatusCode;
use futures::future::BoxFuture;
use leasehold_api::execution::{Execution, ExecutionGraph, ExecutionNode, ExecutionStatusName};
use leasehold_api::{Code, Page};
use leasehold_core::limits::{
    END_REPORTS_PER_SECOND, ERROR_MAX_CHARS, GRAPH_MAX_BYTES, NODE_OUTPUTS_MAX_BYTES,
};
use leasehold_core::{
    DefinitionId, ExecutionId, ExecutionStatus, Version, VersionBody, WorkspaceId,
};
use leasehold_store as store;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;
use utoipa_axum::routes;

/// Returns the bytes of the nodes of an execution with their outputs and errors, about.
fn nodes_bytes(body: &VersionBody) -> usize {
    let nodes = match body {
        VersionBody::Graph(graph) => graph.nodes.len(),
        VersionBody::Binding { .. } => return 0,
    };
    NODE_OUTPUTS_MAX_BYTES as usize + GRAPH_MAX_BYTES + nodes * ERROR_MAX_CHARS
}

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
    Extension(caller): Extension<Caller>,
    Path(workspace): Path<WorkspaceId>,
    Query(query): Query<ExecutionListQuery>,
) -> ApiResult<JsonPage> {
    let cursors = state.cursors.of("execution_list", Some(workspace)).await?;
    let page = cursors.page(query.after.as_deref(), query.limit)?;
    let filter = store::execution::ExecutionFilter {
        workspace,
        status: query.status,
        definition: query.definition,
    };
    let store = state.store.clone();
    let read = move |page| -> BoxFuture<'static, store::Result<Vec<store::execution::Execution>>> {
        let store = store.clone();
        Box::pin(async move { store.execution_list(&filter, page).await })
    };
    let key = |execution: &store::execution::Execution| execution.admission;
    let convert = |execution| convert::execution(execution, caller.payloads());
    let listed = state
        .lists
        .page(page, &cursors, RowMaxBytes::EXECUTION, read, key, convert)
        .await?;
    if listed.0.items.is_empty() {
        ensure_workspace_exists(&state, workspace).await?;
    }
    Ok(listed)
}

/// Returns an execution.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/executions/{execution}", operation_id = "execution_get",
    tag = "executions", params(("workspace" = uuid::Uuid, Path), ("execution" = uuid::Uuid, Path)),
    responses((status = 200, body = Execution), CommonResponses, NotFoundResponse))]
async fn get(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Path((workspace, id)): Path<(WorkspaceId, ExecutionId)>,
) -> ApiResult<Json<Execution>> {
    let execution = find_execution(&state, workspace, id).await?;
    Ok(Json(convert::execution(execution, caller.payloads())))
}

/// Returns an execution of any workspace.
#[utoipa::path(get, path = "/v1/executions/{execution}", operation_id = "execution_find", tag = "executions",
    params(("execution" = uuid::Uuid, Path)), responses((status = 200, body = Execution), CommonResponses, NotFoundResponse))]
async fn find(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<ExecutionId>,
) -> ApiResult<Json<Execution>> {
    let found = state.store.execution_find(id).await?;
    let execution = found.ok_or_else(|| ApiError::not_found("execution"))?;
    Ok(Json(convert::execution(execution, caller.payloads())))
}

/// Returns an execution's graph with the state, attempts and output of each node.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/executions/{execution}/graph", operation_id = "execution_graph",
    tag = "executions", params(("workspace" = uuid::Uuid, Path), ("execution" = uuid::Uuid, Path)),
    responses((status = 200, body = ExecutionGraph), CommonResponses, NotFoundResponse))]
async fn graph(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Path((workspace, id)): Path<(WorkspaceId, ExecutionId)>,
) -> ApiResult<Json<ExecutionGraph>> {
    let (execution, version) = with_version(&state, workspace, id).await?;
    let body = &version.body;
    call_memory::reserve(nodes_bytes(body)).await?;
    let nodes = match body {
        VersionBody::Graph(graph) => nodes::all(&state, id, body, graph, caller.payloads()).await?,
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
    Extension(caller): Extension<Caller>,
    Path((workspace, id, node)): Path<(WorkspaceId, ExecutionId, String)>,
) -> ApiResult<Json<ExecutionNode>> {
    let (_, version) = with_version(&state, workspace, id).await?;
    call_memory::reserve(nodes_bytes(&version.body)).await?;
    let node = nodes::one(&state, id, &version.body, &node, caller.payloads());
    Ok(Json(node.await?))
}

/// Reports that an execution has ended, so that the server soon checks the engine. The server trusts only the engine's answer. It ignores a report of an
/// execution that does not run here, or that has no task node in a queue of the key; the response is the same. A key may send 100 reports per second;
/// one wakes the server for all executions.
#[utoipa::path(post, path = "/v1/executions/{execution}/ended", operation_id = "execution_ended", tag = "workers",
    params(("execution" = uuid::Uuid, Path)), responses((status = 204), CommonResponses))]
async fn ended(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Path(execution): Path<ExecutionId>,
) -> ApiResult<StatusCode> {
    let key = caller.0.id;
    state.end_report_limiter.check(key).map_err(|seconds| {
        let detail = format!(
            "this key exceeded {END_REPORTS_PER_SECOND} reports of ended executions per second; \
             the server finds the end of this execution without the report"
        );
        ApiError::new(Code::RateLimited, detail).retry_after(seconds)
    })?;
    state.end_reports.accept(&state.store, execution, &caller.0);
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
