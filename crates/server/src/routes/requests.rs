//! Requests: enqueueing, showing and listing them. What is done to one that is there stands in `request_acts`.

use super::shown_requests as shown;
use super::workspaces::known;
use crate::access::{Access, Caller};
use crate::body::{Batch, Json};
use crate::lists::Listed;
use crate::openapi::{Common, Conflict, Unknown};
use crate::params::{Path, Query, header, paged};
use crate::refusal::{Outcome, Refusal};
use crate::route::Routes;
use crate::state::State;
use axum::Extension;
use axum::extract::State as Reached;
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use futures::future::BoxFuture;
use leasehold_api::Page;
use leasehold_api::change::Timeline;
use leasehold_api::request::{
    Enqueued, EnqueuedMany, FailureReasonName, NewRequest, NewRequests, Request, RequestStatusName,
};
use leasehold_core::limits::TRACE_CONTEXT_MAX_CHARS;
use leasehold_core::{DefinitionId, FailureReason, RequestId, RequestStatus, WorkspaceId, text};
use leasehold_store as store;
use leasehold_store::request::{EnqueuedRequest, RequestFilter};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .add(routes!(list), Access::Workspace)
        .add(routes!(enqueue), Access::Workspace.starts_trace())
        .add(routes!(enqueue_many), Access::Workspace.starts_trace())
        .add(routes!(get), Access::Workspace)
        .add(routes!(timeline), Access::Workspace)
        .add(routes!(list_all), Access::Admin)
        .add(routes!(find), Access::Admin)
}

const IDEMPOTENCY_KEY: &str = "Idempotency-Key";

/// Where a request is found.
pub(super) fn location(workspace: WorkspaceId, id: RequestId) -> [(HeaderName, String); 1] {
    [(
        LOCATION,
        format!("/v1/workspaces/{workspace}/requests/{id}"),
    )]
}

type Made<T> = (StatusCode, [(HeaderName, String); 1], Json<T>);

/// Enqueues a request. With an idempotency key, in the body or as a header, a repeated call is answered with the request of the first.
#[utoipa::path(post, path = "/v1/workspaces/{workspace}/requests", operation_id = "request_enqueue", tag = "requests",
    params(("workspace" = uuid::Uuid, Path),
        ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, pattern = r"^[!-~]([ -~]*[!-~])?$", description = "The same as `idempotency_key` in the body."),
        ("traceparent" = Option<String>, Header, description = "The caller's trace; it is kept with the request.")),
    request_body = NewRequest,
    responses((status = 201, body = Enqueued, description = "It is in the queue.", headers(("Location" = String))),
        (status = 200, body = Enqueued, description = "Its idempotency key was held by this request.", headers(("Location" = String))),
        Common, Unknown, Conflict))]
async fn enqueue(
    Reached(state): Reached<State>,
    Extension(caller): Extension<Caller>,
    Path(workspace): Path<WorkspaceId>,
    headers: HeaderMap,
    Json(mut new): Json<NewRequest>,
) -> Outcome<Made<Enqueued>> {
    let key = header(&headers, IDEMPOTENCY_KEY)?;
    let in_header = key.is_some();
    new.idempotency_key = one_key(new.idempotency_key, key)?;
    let enqueued = insert(&state, &caller, workspace, &headers, vec![new]).await;
    let enqueued = enqueued.map_err(|refusal| {
        let refusal = refusal.of_one("requests");
        if in_header {
            refusal.in_header("/idempotency_key", IDEMPOTENCY_KEY)
        } else {
            refusal
        }
    })?;
    let one = enqueued.first().copied().ok_or_else(Refusal::not_found)?;
    let status = if one.inserted {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((
        status,
        location(workspace, one.id),
        Json(shown::enqueued(one)),
    ))
}

/// Enqueues many requests, all or none.
#[utoipa::path(post, path = "/v1/workspaces/{workspace}/requests/batch", operation_id = "request_enqueue_many", tag = "requests",
    params(("workspace" = uuid::Uuid, Path),
        ("traceparent" = Option<String>, Header, description = "The caller's trace; it is kept with the requests.")),
    request_body = NewRequests,
    responses((status = 200, body = EnqueuedMany), Common, Unknown, Conflict))]
async fn enqueue_many(
    Reached(state): Reached<State>,
    Extension(caller): Extension<Caller>,
    Path(workspace): Path<WorkspaceId>,
    headers: HeaderMap,
    Batch(new): Batch<NewRequests>,
) -> Outcome<Json<EnqueuedMany>> {
    let enqueued = insert(&state, &caller, workspace, &headers, new.requests).await?;
    let requests = enqueued.into_iter().map(shown::enqueued).collect();
    Ok(Json(EnqueuedMany { requests }))
}

async fn insert(
    state: &State,
    caller: &Caller,
    workspace: WorkspaceId,
    headers: &HeaderMap,
    new: Vec<NewRequest>,
) -> Outcome<Vec<EnqueuedRequest>> {
    let trace = trace_context(headers);
    let shaped = |new| shown::new_request(new, trace);
    let call = store::request::Enqueue {
        workspace,
        requests: new.into_iter().map(shaped).collect(),
        by: caller.name(),
    };
    let enqueuer = &state.enqueuer;
    let enqueued = enqueuer.enqueue_within(&*state.store, &state.backlog, &call);
    enqueued
        .await
        .map_err(|error| Refusal::of_enqueue(error, caller))
}

fn one_key(body: Option<String>, header: Option<String>) -> Outcome<Option<String>> {
    match (body, header) {
        (Some(body), Some(header)) if body != header => Err(Refusal::parameter(
            IDEMPOTENCY_KEY,
            "the body's `idempotency_key` says something else",
        )),
        (body, header) => Ok(header.or(body)),
    }
}

/// The caller's trace, unless it could not be kept: whoever enqueues has more to do than to trace.
fn trace_context(headers: &HeaderMap) -> Option<&str> {
    let trace = headers.get("traceparent")?.to_str().ok()?;
    text::check(trace, TRACE_CONTEXT_MAX_CHARS)
        .ok()
        .map(|()| trace)
}

/// Which requests to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// Only in this status.
    #[param(value_type = Option<RequestStatusName>)]
    status: Option<RequestStatus>,
    /// Only of this definition.
    #[param(value_type = Option<uuid::Uuid>)]
    definition: Option<DefinitionId>,
    /// Only failed for this reason.
    #[param(value_type = Option<FailureReasonName>)]
    reason: Option<FailureReason>,
    /// `next` of the page before.
    #[param(value_type = Option<uuid::Uuid>)]
    after: Option<String>,
    /// How many at most; 100 unless said.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// The requests of a workspace, newest first.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/requests", operation_id = "request_list", tag = "requests",
    params(("workspace" = uuid::Uuid, Path), Wanted), responses((status = 200, body = Page<Request>), Common, Unknown))]
async fn list(
    Reached(state): Reached<State>,
    Path(workspace): Path<WorkspaceId>,
    Query(wanted): Query<Wanted>,
) -> Outcome<Listed> {
    let filter = RequestFilter {
        workspace: Some(workspace),
        status: wanted.status,
        definition: wanted.definition,
        reason: wanted.reason,
    };
    let page = paged(wanted.after.as_deref(), wanted.limit)?;
    page_of(&state, &filter, page).await
}

/// Which requests of all to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct WantedOfAll {
    /// Only of this workspace.
    #[param(value_type = Option<uuid::Uuid>)]
    workspace: Option<WorkspaceId>,
    /// Only in this status.
    #[param(value_type = Option<RequestStatusName>)]
    status: Option<RequestStatus>,
    /// Only of this definition.
    #[param(value_type = Option<uuid::Uuid>)]
    definition: Option<DefinitionId>,
    /// Only failed for this reason.
    #[param(value_type = Option<FailureReasonName>)]
    reason: Option<FailureReason>,
    /// `next` of the page before.
    #[param(value_type = Option<uuid::Uuid>)]
    after: Option<String>,
    /// How many at most; 100 unless said.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// The requests of all workspaces, newest first.
#[utoipa::path(get, path = "/v1/requests", operation_id = "request_list_all", tag = "requests", params(WantedOfAll),
    responses((status = 200, body = Page<Request>), Common, Unknown))]
async fn list_all(
    Reached(state): Reached<State>,
    Query(wanted): Query<WantedOfAll>,
) -> Outcome<Listed> {
    let filter = RequestFilter {
        workspace: wanted.workspace,
        status: wanted.status,
        definition: wanted.definition,
        reason: wanted.reason,
    };
    let page = paged(wanted.after.as_deref(), wanted.limit)?;
    page_of(&state, &filter, page).await
}

pub(super) async fn page_of(
    state: &State,
    filter: &RequestFilter,
    page: store::Page<RequestId>,
) -> Outcome<Listed> {
    let (store, asked) = (state.store.clone(), *filter);
    let read = move |page| -> BoxFuture<'static, store::Result<Vec<store::request::Request>>> {
        let store = store.clone();
        Box::pin(async move { store.request_list(&asked, page).await })
    };
    let key = |request: &store::request::Request| request.id;
    let listed = state.lists.page(page, read, key, shown::request).await?;
    if let (true, Some(workspace)) = (listed.0.items.is_empty(), filter.workspace) {
        known(state, workspace).await?;
    }
    Ok(listed)
}

/// A request.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/requests/{request}", operation_id = "request_get", tag = "requests",
    params(("workspace" = uuid::Uuid, Path), ("request" = uuid::Uuid, Path)),
    responses((status = 200, body = Request), Common, Unknown))]
async fn get(
    Reached(state): Reached<State>,
    Path((workspace, id)): Path<(WorkspaceId, RequestId)>,
) -> Outcome<Json<Request>> {
    let found = state.store.request_get(workspace, id).await?;
    let request = found.ok_or_else(Refusal::not_found)?;
    Ok(Json(shown::request(request)))
}

/// A request of any workspace.
#[utoipa::path(get, path = "/v1/requests/{request}", operation_id = "request_find", tag = "requests",
    params(("request" = uuid::Uuid, Path)), responses((status = 200, body = Request), Common, Unknown))]
async fn find(Reached(state): Reached<State>, Path(id): Path<RequestId>) -> Outcome<Json<Request>> {
    let found = state.store.request_find(id).await?;
    let request = found.ok_or_else(Refusal::not_found)?;
    Ok(Json(shown::request(request)))
}

/// Every transition of a request, in order.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/requests/{request}/timeline", operation_id = "request_timeline",
    tag = "requests", params(("workspace" = uuid::Uuid, Path), ("request" = uuid::Uuid, Path)),
    responses((status = 200, body = Timeline), Common, Unknown))]
async fn timeline(
    Reached(state): Reached<State>,
    Path((workspace, id)): Path<(WorkspaceId, RequestId)>,
) -> Outcome<Json<Timeline>> {
    let events = state.store.request_timeline(workspace, id).await?;
    // A request that is there has been enqueued, so it has an event.
    if events.is_empty() {
        return Err(Refusal::not_found());
    }
    let events = events.into_iter().map(shown::event).collect();
    Ok(Json(Timeline { events }))
}
