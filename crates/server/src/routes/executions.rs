//! Executions of a workspace: what runs and what ran.

use super::nodes;
use super::shown_requests as shown;
use super::workspaces::known;
use crate::access::Access;
use crate::body::Json;
use crate::openapi::{Common, Unknown};
use crate::params::{Path, Query, answered, paged};
use crate::refusal::{Outcome, Refusal};
use crate::route::Routes;
use crate::state::State;
use axum::extract::State as Reached;
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

/// Which executions to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// Only in this status; RUNNING ones hold a slot.
    #[param(value_type = Option<ExecutionStatusName>)]
    status: Option<ExecutionStatus>,
    /// Only of this definition.
    #[param(value_type = Option<uuid::Uuid>)]
    definition: Option<DefinitionId>,
    /// `next` of the page before.
    #[param(value_type = Option<i64>)]
    after: Option<String>,
    /// How many at most; 100 unless said.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// The executions of a workspace, last admitted first.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/executions", operation_id = "execution_list", tag = "executions",
    params(("workspace" = uuid::Uuid, Path), Wanted), responses((status = 200, body = Page<Execution>), Common, Unknown))]
async fn list(
    Reached(state): Reached<State>,
    Path(workspace): Path<WorkspaceId>,
    Query(wanted): Query<Wanted>,
) -> Outcome<Json<Page<Execution>>> {
    let page = paged(wanted.after.as_deref(), wanted.limit)?;
    let limit = page.limit;
    let filter = store::execution::ExecutionFilter {
        workspace,
        status: wanted.status,
        definition: wanted.definition,
    };
    let executions = state.store.execution_list(&filter, page).await?;
    if executions.is_empty() {
        known(&state, workspace).await?;
    }
    let next = |execution: &store::execution::Execution| execution.admission.to_string();
    Ok(Json(answered(executions, limit, next, shown::execution)))
}

/// An execution.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/executions/{execution}", operation_id = "execution_get",
    tag = "executions", params(("workspace" = uuid::Uuid, Path), ("execution" = uuid::Uuid, Path)),
    responses((status = 200, body = Execution), Common, Unknown))]
async fn get(
    Reached(state): Reached<State>,
    Path((workspace, id)): Path<(WorkspaceId, ExecutionId)>,
) -> Outcome<Json<Execution>> {
    let execution = found(&state, workspace, id).await?;
    Ok(Json(shown::execution(execution)))
}

/// An execution of any workspace.
#[utoipa::path(get, path = "/v1/executions/{execution}", operation_id = "execution_find", tag = "executions",
    params(("execution" = uuid::Uuid, Path)), responses((status = 200, body = Execution), Common, Unknown))]
async fn find(
    Reached(state): Reached<State>,
    Path(id): Path<ExecutionId>,
) -> Outcome<Json<Execution>> {
    let found = state.store.execution_find(id).await?;
    let execution = found.ok_or_else(Refusal::not_found)?;
    Ok(Json(shown::execution(execution)))
}

/// An execution's graph with the state, attempts and output of each node.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/executions/{execution}/graph", operation_id = "execution_graph",
    tag = "executions", params(("workspace" = uuid::Uuid, Path), ("execution" = uuid::Uuid, Path)),
    responses((status = 200, body = ExecutionGraph), Common, Unknown))]
async fn graph(
    Reached(state): Reached<State>,
    Path((workspace, id)): Path<(WorkspaceId, ExecutionId)>,
) -> Outcome<Json<ExecutionGraph>> {
    let (execution, version) = with_version(&state, workspace, id).await?;
    let body = &version.body;
    let _turn = state.lists.turn().await;
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

/// A node of an execution, with its output however large it is.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/executions/{execution}/nodes/{node}", operation_id = "execution_node",
    tag = "executions", params(("workspace" = uuid::Uuid, Path), ("execution" = uuid::Uuid, Path), ("node" = String, Path)),
    responses((status = 200, body = ExecutionNode), Common, Unknown))]
async fn node(
    Reached(state): Reached<State>,
    Path((workspace, id, node)): Path<(WorkspaceId, ExecutionId, String)>,
) -> Outcome<Json<ExecutionNode>> {
    let (_, version) = with_version(&state, workspace, id).await?;
    let _turn = state.lists.turn().await;
    Ok(Json(nodes::one(&state, id, &version.body, &node).await?))
}

/// Says that an execution has ended in the engine, so that the server looks there at once. It believes only what the engine says.
#[utoipa::path(post, path = "/v1/executions/{execution}/ended", operation_id = "execution_ended", tag = "workers",
    params(("execution" = uuid::Uuid, Path)), responses((status = 204), Common))]
async fn ended(
    Reached(state): Reached<State>,
    Path(execution): Path<ExecutionId>,
) -> Outcome<StatusCode> {
    ops::execution::report_ended(&*state.store, execution).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn found(
    state: &State,
    workspace: WorkspaceId,
    id: ExecutionId,
) -> Outcome<store::execution::Execution> {
    let found = state.store.execution_get(workspace, id).await?;
    found.ok_or_else(Refusal::not_found)
}

/// The execution and the version that it runs.
async fn with_version(
    state: &State,
    workspace: WorkspaceId,
    id: ExecutionId,
) -> Outcome<(store::execution::Execution, Arc<Version>)> {
    let execution = found(state, workspace, id).await?;
    let version = state
        .store
        .version_get(workspace, execution.version)
        .await?;
    let version = version.ok_or_else(Refusal::not_found)?;
    Ok((execution, version))
}
