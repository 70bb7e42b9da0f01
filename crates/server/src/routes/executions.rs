//! Executions of a workspace: what runs and what ran.

use super::shown_requests as shown;
use super::workspaces::known;
use crate::body::Json;
use crate::openapi::{Common, Unknown};
use crate::params::{Path, Query, answered, paged};
use crate::refusal::{Outcome, Refusal};
use crate::state::State;
use axum::extract::State as Reached;
use leasehold_api::Page;
use leasehold_api::execution::{Execution, ExecutionStatusName};
use leasehold_core::{DefinitionId, ExecutionId, ExecutionStatus, WorkspaceId};
use leasehold_store as store;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<State> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(get))
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
    let found = state.store.execution_get(workspace, id).await?;
    let execution = found.ok_or_else(Refusal::not_found)?;
    Ok(Json(shown::execution(execution)))
}
