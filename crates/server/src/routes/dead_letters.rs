//! Dead letters: lists the failed requests of a workspace and redrives them in bulk.

use super::requests::page_of;
use crate::access::{Access, Caller};
use crate::api_error::ApiResult;
use crate::body::{Json, OptionalJson};
use crate::call_memory::{self, rows_bytes};
use crate::lists::JsonPage;
use crate::openapi::{CommonResponses, NotFoundResponse};
use crate::params::{Path, Query};
use crate::route::Routes;
use crate::state::State;
use axum::Extension;
use axum::extract::State as AxumState;
use leasehold_api::Page;
use leasehold_api::request::{
    FailureReasonName, RedriveMany, RedrivenRequest, RedrivenRequests, Request,
};
use leasehold_core::limits::SWEEP_MAX_BATCH;
use leasehold_core::{DefinitionId, FailureReason, RequestStatus, WorkspaceId};
use leasehold_ops::redrive;
use leasehold_store as store;
use leasehold_store::request::RequestFilter;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::routes;

/// Bytes of an entry in the result of a bulk redrive: two ids.
const REDRIVEN_MAX_BYTES: usize = 110;

pub(super) fn routes() -> Routes {
    Routes::default()
        .add(routes!(list), Access::Workspace)
        .add(routes!(redrive_many), Access::Workspace)
}

/// Filters dead letters.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct DeadLetterListQuery {
    /// Only requests that failed for this reason.
    #[param(value_type = Option<FailureReasonName>)]
    reason: Option<FailureReason>,
    /// Only requests of this definition.
    #[param(value_type = Option<uuid::Uuid>)]
    definition: Option<DefinitionId>,
    /// Cursor: the `next` of the previous page.
    after: Option<String>,
    /// Maximum number of items. Default: 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// Lists the failed requests of a workspace, newest first.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/dead-letters", operation_id = "dead_letter_list", tag = "dead letters",
    params(("workspace" = uuid::Uuid, Path), DeadLetterListQuery), responses((status = 200, body = Page<Request>), CommonResponses, NotFoundResponse))]
async fn list(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Path(workspace): Path<WorkspaceId>,
    Query(query): Query<DeadLetterListQuery>,
) -> ApiResult<JsonPage> {
    let filter = RequestFilter {
        workspace: Some(workspace),
        status: Some(RequestStatus::Failed),
        definition: query.definition,
        reason: query.reason,
    };
    let cursors = state
        .cursors
        .of("dead_letter_list", Some(workspace))
        .await?;
    let page = cursors.page(query.after.as_deref(), query.limit)?;
    page_of(&state, &caller, &cursors, &filter, page).await
}

/// Redrives failed requests that were never redriven, oldest first: enqueues a copy of each. The failed requests are not changed. Redrives as many as the quotas of the workspace allow, and 16 MiB of them
/// at most: repeat the call until it redrives none.
#[utoipa::path(post, path = "/v1/workspaces/{workspace}/dead-letters/redrive", operation_id = "dead_letter_redrive",
    tag = "dead letters", params(("workspace" = uuid::Uuid, Path)), request_body = Option<RedriveMany>,
    responses((status = 200, body = RedrivenRequests), CommonResponses, NotFoundResponse))]
async fn redrive_many(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Path(workspace): Path<WorkspaceId>,
    OptionalJson(redrive_many): OptionalJson<RedriveMany>,
) -> ApiResult<Json<RedrivenRequests>> {
    let redrive_many = store::request::RedriveMany {
        workspace,
        reason: redrive_many.reason,
        definition: redrive_many.definition,
        limit: redrive_many.limit.unwrap_or(redrive::DEFAULT_LIMIT),
        max_bytes: u64::MAX,
        by: caller.name(),
    };
    call_memory::reserve(rows_bytes(
        redrive_many.limit.min(SWEEP_MAX_BATCH),
        REDRIVEN_MAX_BYTES,
    ))
    .await?;
    // A few requests can have megabytes, and a search for them may read all failed requests of the workspace.
    let _turn = state.large_changes.turn().await;
    let pairs = redrive::redrive_many(&*state.store, &state.quotas, &redrive_many).await?;
    let convert = |(failed, request)| RedrivenRequest { failed, request };
    let redriven = pairs.into_iter().map(convert).collect();
    Ok(Json(RedrivenRequests { redriven }))
}
