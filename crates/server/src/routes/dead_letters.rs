//! Dead letters: the failed requests of a workspace, and their redrive in bulk.

use super::requests::page_of;
use crate::access::{Access, Caller};
use crate::body::{Json, Maybe};
use crate::lists::Listed;
use crate::openapi::{Common, Unknown};
use crate::params::{Path, Query, paged};
use crate::refusal::Outcome;
use crate::route::Routes;
use crate::state::State;
use axum::Extension;
use axum::extract::State as Reached;
use leasehold_api::Page;
use leasehold_api::request::{FailureReasonName, RedriveMany, Redriven, RedrivenMany, Request};
use leasehold_core::{DefinitionId, FailureReason, RequestStatus, WorkspaceId};
use leasehold_ops::redrive;
use leasehold_store as store;
use leasehold_store::request::RequestFilter;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .add(routes!(list), Access::Workspace)
        .add(routes!(redrive_many), Access::Workspace)
}

/// Which dead letters to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// Only those that failed for this reason.
    #[param(value_type = Option<FailureReasonName>)]
    reason: Option<FailureReason>,
    /// Only of this definition.
    #[param(value_type = Option<uuid::Uuid>)]
    definition: Option<DefinitionId>,
    /// `next` of the page before.
    #[param(value_type = Option<uuid::Uuid>)]
    after: Option<String>,
    /// How many at most; 100 unless said.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// The failed requests of a workspace, newest first.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/dead-letters", operation_id = "dead_letter_list", tag = "dead letters",
    params(("workspace" = uuid::Uuid, Path), Wanted), responses((status = 200, body = Page<Request>), Common, Unknown))]
async fn list(
    Reached(state): Reached<State>,
    Path(workspace): Path<WorkspaceId>,
    Query(wanted): Query<Wanted>,
) -> Outcome<Listed> {
    let filter = RequestFilter {
        workspace: Some(workspace),
        status: Some(RequestStatus::Failed),
        definition: wanted.definition,
        reason: wanted.reason,
    };
    let page = paged(wanted.after.as_deref(), wanted.limit)?;
    page_of(&state, &filter, page).await
}

/// Redrives failed requests that were never redriven, oldest first: a new request for each, and the failed one stays as it is.
#[utoipa::path(post, path = "/v1/workspaces/{workspace}/dead-letters/redrive", operation_id = "dead_letter_redrive",
    tag = "dead letters", params(("workspace" = uuid::Uuid, Path)), request_body = Option<RedriveMany>,
    responses((status = 200, body = RedrivenMany), Common, Unknown))]
async fn redrive_many(
    Reached(state): Reached<State>,
    Extension(caller): Extension<Caller>,
    Path(workspace): Path<WorkspaceId>,
    Maybe(asked): Maybe<RedriveMany>,
) -> Outcome<Json<RedrivenMany>> {
    let asked = store::request::RedriveMany {
        workspace,
        reason: asked.reason,
        limit: asked.limit.unwrap_or(redrive::USUAL_LIMIT),
        by: caller.name(),
    };
    let pairs = redrive::redrive_many(&*state.store, &state.backlog, &asked).await?;
    let shown = |(failed, request)| Redriven { failed, request };
    let redriven = pairs.into_iter().map(shown).collect();
    Ok(Json(RedrivenMany { redriven }))
}
