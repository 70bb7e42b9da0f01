//! What is done to a request that is there: cancelling it, and redriving it once it has failed.

use super::requests::location;
use crate::access::{Access, Caller};
use crate::body::{Json, Maybe};
use crate::openapi::{Common, Conflict, Unknown};
use crate::params::Path;
use crate::refusal::Outcome;
use crate::route::Routes;
use crate::state::State;
use axum::Extension;
use axum::extract::State as Reached;
use axum::http::{HeaderName, StatusCode};
use leasehold_api::request::{Cancel, CancelState, Cancelled, Redriven};
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

/// Cancels a request: at once if it waits, else when its start is resolved or its execution has ended.
#[utoipa::path(post, path = "/v1/workspaces/{workspace}/requests/{request}/cancel", operation_id = "request_cancel",
    tag = "requests", params(("workspace" = uuid::Uuid, Path), ("request" = uuid::Uuid, Path)), request_body = Option<Cancel>,
    responses((status = 200, body = Cancelled, description = "It has failed as cancelled."),
        (status = 202, body = Cancelled, description = "The wish is kept."), Common, Unknown, Conflict))]
async fn cancel(
    Reached(state): Reached<State>,
    Extension(caller): Extension<Caller>,
    Path((workspace, request)): Path<(WorkspaceId, RequestId)>,
    Maybe(asked): Maybe<Cancel>,
) -> Outcome<(StatusCode, Json<Cancelled>)> {
    let cancel = store::request::Cancel {
        workspace,
        request,
        force: asked.force,
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
    Ok((status, Json(Cancelled { state, execution })))
}

/// Redrives a failed request: a new one like it is enqueued, and the failed one stays as it is.
#[utoipa::path(post, path = "/v1/workspaces/{workspace}/requests/{request}/redrive", operation_id = "request_redrive",
    tag = "requests", params(("workspace" = uuid::Uuid, Path), ("request" = uuid::Uuid, Path)),
    responses((status = 201, body = Redriven, headers(("Location" = String))), Common, Unknown, Conflict))]
async fn redrive(
    Reached(state): Reached<State>,
    Extension(caller): Extension<Caller>,
    Path((workspace, failed)): Path<(WorkspaceId, RequestId)>,
) -> Outcome<(StatusCode, [(HeaderName, String); 1], Json<Redriven>)> {
    let redrive = store::request::Redrive {
        workspace,
        failed,
        id: fresh_id(),
        by: caller.name(),
    };
    let request = ops::redrive::redrive(&*state.store, &state.backlog, &redrive).await?;
    let made = Json(Redriven { failed, request });
    Ok((StatusCode::CREATED, location(workspace, request), made))
}
