//! Actions on a request: cancel it, or redrive it after it failed.

use super::requests::location;
use crate::access::{Access, Caller};
use crate::api_error::ApiResult;
use crate::body::{Json, OptionalJson};
use crate::openapi::{CommonResponses, ConflictResponse, NotFoundResponse};
use crate::params::Path;
use crate::route::Routes;
use crate::state::State;
use axum::Extension;
use axum::extract::State as AxumState;
use axum::http::{HeaderName, StatusCode};
use leasehold_api::request::{CancelOptions, CancelResult, CancelState, RedrivenRequest};
use leasehold_core::{RequestId, WorkspaceId};
use leasehold_ops::{self as ops, CancelOutcome};
use leasehold_store as store;
use leasehold_store::fresh_id;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .add(routes!(cancel), Access::Workspace)
        .add(routes!(redrive), Access::Workspace)
}

/// Cancels a request: a pending one at once, otherwise when its start is resolved or its execution has ended.
#[utoipa::path(post, path = "/v1/workspaces/{workspace}/requests/{request}/cancel", operation_id = "request_cancel",
    tag = "requests", params(("workspace" = uuid::Uuid, Path), ("request" = uuid::Uuid, Path)), request_body = Option<CancelOptions>,
    responses((status = 200, body = CancelResult, description = "The request was cancelled."),
        (status = 202, body = CancelResult, description = "The cancel request was recorded."), CommonResponses, NotFoundResponse, ConflictResponse))]
async fn cancel(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Path((workspace, request)): Path<(WorkspaceId, RequestId)>,
    OptionalJson(options): OptionalJson<CancelOptions>,
) -> ApiResult<(StatusCode, Json<CancelResult>)> {
    let cancel = store::request::Cancel {
        workspace,
        request,
        force: options.force,
        by: caller.name(),
    };
    let (status, state, execution) = match ops::cancel::request(&*state.store, &cancel).await? {
        CancelOutcome::Cancelled => (StatusCode::OK, CancelState::Cancelled, None),
        CancelOutcome::Recorded(execution) => (
            StatusCode::ACCEPTED,
            CancelState::Cancelling,
            Some(execution),
        ),
    };
    Ok((status, Json(CancelResult { state, execution })))
}

/// Redrives a failed request: enqueues a copy of it. The failed request is not changed.
#[utoipa::path(post, path = "/v1/workspaces/{workspace}/requests/{request}/redrive", operation_id = "request_redrive",
    tag = "requests", params(("workspace" = uuid::Uuid, Path), ("request" = uuid::Uuid, Path)),
    responses((status = 201, body = RedrivenRequest, headers(("Location" = String))), CommonResponses, NotFoundResponse, ConflictResponse))]
async fn redrive(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Path((workspace, failed)): Path<(WorkspaceId, RequestId)>,
) -> ApiResult<(StatusCode, [(HeaderName, String); 1], Json<RedrivenRequest>)> {
    let redrive = store::request::Redrive {
        workspace,
        failed,
        id: fresh_id(),
        by: caller.name(),
    };
    let request = ops::redrive::redrive(&*state.store, &state.quotas, &redrive).await?;
    let body = Json(RedrivenRequest { failed, request });
    Ok((StatusCode::CREATED, location(workspace, request), body))
}
