//! Requests: enqueue, list and show them. `request_actions` cancels and redrives them.

use super::convert_requests as convert;
use super::workspaces::ensure_workspace_exists;
use crate::access::{Access, Caller};
use crate::api_error::{ApiError, ApiResult};
use crate::body::{BatchJson, Json};
use crate::call_memory;
use crate::cursors::ListCursors;
use crate::lists::{JsonPage, RowMaxBytes};
use crate::openapi::{CommonResponses, ConflictResponse, NotFoundResponse};
use crate::params::{Path, Query, header};
use crate::route::Routes;
use crate::state::State;
use axum::Extension;
use axum::extract::State as AxumState;
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use futures::future::BoxFuture;
use leasehold_api::Page;
use leasehold_api::change::Timeline;
use leasehold_api::request::{
    EnqueuedRequest, EnqueuedRequests, FailureReasonName, NewRequest, NewRequests, Request,
    RequestStatusName,
};
use leasehold_core::limits::{ENQUEUE_MAX_REQUESTS, PARAMS_MAX_BYTES, TRACE_CONTEXT_MAX_CHARS};
use leasehold_core::{DefinitionId, FailureReason, RequestId, RequestStatus, WorkspaceId, text};
use leasehold_store as store;
use leasehold_store::request::RequestFilter;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::routes;

/// Bytes of an entry in the result of a batch.
const ENQUEUED_MAX_BYTES: usize = 70;

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

/// Returns the `Location` header of a request.
pub(super) fn location(workspace: WorkspaceId, id: RequestId) -> [(HeaderName, String); 1] {
    [(
        LOCATION,
        format!("/v1/workspaces/{workspace}/requests/{id}"),
    )]
}

type CreatedResponse<T> = (StatusCode, [(HeaderName, String); 1], Json<T>);

/// Enqueues a request. With an idempotency key, in the body or as a header, a repeated call returns the request of the first call.
#[utoipa::path(post, path = "/v1/workspaces/{workspace}/requests", operation_id = "request_enqueue", tag = "requests",
    params(("workspace" = uuid::Uuid, Path),
        ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, pattern = r"^[!-~]([ -~]*[!-~])?$", description = "Same as `idempotency_key` in the body."),
        ("traceparent" = Option<String>, Header, description = "The caller's W3C trace context; stored with the request.")),
    request_body = NewRequest,
    responses((status = 201, body = EnqueuedRequest, description = "The request was enqueued.", headers(("Location" = String))),
        (status = 200, body = EnqueuedRequest, description = "An earlier request holds the idempotency key.", headers(("Location" = String))),
        CommonResponses, NotFoundResponse, ConflictResponse))]
async fn enqueue(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Path(workspace): Path<WorkspaceId>,
    headers: HeaderMap,
    Json(mut new): Json<NewRequest>,
) -> ApiResult<CreatedResponse<EnqueuedRequest>> {
    let key = header(&headers, IDEMPOTENCY_KEY)?;
    let in_header = key.is_some();
    new.idempotency_key = idempotency_key(new.idempotency_key, key)?;
    let enqueued = insert(&state, &caller, workspace, &headers, vec![new]).await;
    let enqueued = enqueued.map_err(|error| {
        let error = error.for_single_item("requests");
        if in_header {
            error.in_header("/idempotency_key", IDEMPOTENCY_KEY)
        } else {
            error
        }
    })?;
    let one = enqueued.first().copied();
    let one = one.ok_or_else(|| ApiError::not_found("request"))?;
    let status = if one.inserted {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((
        status,
        location(workspace, one.id),
        Json(convert::enqueued(one)),
    ))
}

/// Enqueues many requests, all or none.
#[utoipa::path(post, path = "/v1/workspaces/{workspace}/requests/batch", operation_id = "request_enqueue_many", tag = "requests",
    params(("workspace" = uuid::Uuid, Path),
        ("traceparent" = Option<String>, Header, description = "The caller's W3C trace context; stored with the requests.")),
    request_body = NewRequests,
    responses((status = 200, body = EnqueuedRequests), CommonResponses, NotFoundResponse, ConflictResponse))]
async fn enqueue_many(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Path(workspace): Path<WorkspaceId>,
    headers: HeaderMap,
    BatchJson(new): BatchJson<NewRequests>,
) -> ApiResult<Json<EnqueuedRequests>> {
    call_memory::reserve(new.requests.len().min(ENQUEUE_MAX_REQUESTS) * ENQUEUED_MAX_BYTES).await?;
    let _turn = state.large_changes.permit(new.requests.len()).await;
    let enqueued = insert(&state, &caller, workspace, &headers, new.requests).await?;
    let requests = enqueued.into_iter().map(convert::enqueued).collect();
    Ok(Json(EnqueuedRequests { requests }))
}

async fn insert(
    state: &State,
    caller: &Caller,
    workspace: WorkspaceId,
    headers: &HeaderMap,
    new: Vec<NewRequest>,
) -> ApiResult<Vec<store::request::EnqueuedRequest>> {
    let trace = trace_context(headers);
    let to_store = |new| convert::new_request(new, trace);
    let call = store::request::Enqueue {
        workspace,
        requests: new.into_iter().map(to_store).collect(),
        by: caller.name(),
    };
    let enqueuer = &state.enqueuer;
    let enqueued = enqueuer.enqueue_within(&*state.store, &state.quotas, call);
    enqueued
        .await
        .map_err(|error| ApiError::from_enqueue(error, caller))
}

fn idempotency_key(body: Option<String>, header: Option<String>) -> ApiResult<Option<String>> {
    match (body, header) {
        (Some(body), Some(header)) if body != header => Err(ApiError::parameter(
            IDEMPOTENCY_KEY,
            "differs from `idempotency_key` in the body",
        )),
        (body, header) => Ok(header.or(body)),
    }
}

/// Returns the caller's trace context. An invalid one is ignored: enqueueing must not fail because of it.
fn trace_context(headers: &HeaderMap) -> Option<&str> {
    let trace = headers.get("traceparent")?.to_str().ok()?;
    text::check(trace, TRACE_CONTEXT_MAX_CHARS)
        .ok()
        .map(|()| trace)
}

/// Filters the requests of a workspace.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct RequestListQuery {
    /// Only requests in this status.
    #[param(value_type = Option<RequestStatusName>)]
    status: Option<RequestStatus>,
    /// Only requests of this definition.
    #[param(value_type = Option<uuid::Uuid>)]
    definition: Option<DefinitionId>,
    /// Only requests that failed for this reason.
    #[param(value_type = Option<FailureReasonName>)]
    reason: Option<FailureReason>,
    /// Cursor: the `next` of the previous page.
    after: Option<String>,
    /// Maximum number of items. Default: 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// Lists the requests of a workspace, newest first.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/requests", operation_id = "request_list", tag = "requests",
    params(("workspace" = uuid::Uuid, Path), RequestListQuery), responses((status = 200, body = Page<Request>), CommonResponses, NotFoundResponse))]
async fn list(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Path(workspace): Path<WorkspaceId>,
    Query(query): Query<RequestListQuery>,
) -> ApiResult<JsonPage> {
    let filter = RequestFilter {
        workspace: Some(workspace),
        status: query.status,
        definition: query.definition,
        reason: query.reason,
    };
    let cursors = state.cursors.of("request_list", Some(workspace)).await?;
    let page = cursors.page(query.after.as_deref(), query.limit)?;
    page_of(&state, &caller, &cursors, &filter, page).await
}

/// Filters the requests of all workspaces.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct AllRequestsQuery {
    /// Only requests of this workspace.
    #[param(value_type = Option<uuid::Uuid>)]
    workspace: Option<WorkspaceId>,
    /// Only requests in this status.
    #[param(value_type = Option<RequestStatusName>)]
    status: Option<RequestStatus>,
    /// Only requests of this definition.
    #[param(value_type = Option<uuid::Uuid>)]
    definition: Option<DefinitionId>,
    /// Only requests that failed for this reason.
    #[param(value_type = Option<FailureReasonName>)]
    reason: Option<FailureReason>,
    /// Cursor: the `next` of the previous page.
    after: Option<String>,
    /// Maximum number of items. Default: 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// Lists the requests of all workspaces, newest first.
#[utoipa::path(get, path = "/v1/requests", operation_id = "request_list_all", tag = "requests", params(AllRequestsQuery),
    responses((status = 200, body = Page<Request>), CommonResponses, NotFoundResponse))]
async fn list_all(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Query(query): Query<AllRequestsQuery>,
) -> ApiResult<JsonPage> {
    let filter = RequestFilter {
        workspace: query.workspace,
        status: query.status,
        definition: query.definition,
        reason: query.reason,
    };
    let cursors = state.cursors.of("request_list_all", None).await?;
    let page = cursors.page(query.after.as_deref(), query.limit)?;
    page_of(&state, &caller, &cursors, &filter, page).await
}

pub(super) async fn page_of(
    state: &State,
    caller: &Caller,
    cursors: &ListCursors<'_>,
    filter: &RequestFilter,
    page: store::Page<RequestId>,
) -> ApiResult<JsonPage> {
    let (store, requested) = (state.store.clone(), *filter);
    let read = move |page| -> BoxFuture<'static, store::Result<Vec<store::request::Request>>> {
        let store = store.clone();
        Box::pin(async move { store.request_list(&requested, page).await })
    };
    let key = |request: &store::request::Request| request.id;
    let convert = |request| convert::request(request, caller.payloads());
    let listed = state
        .lists
        .page(page, cursors, RowMaxBytes::REQUEST, read, key, convert)
        .await?;
    if let (true, Some(workspace)) = (listed.0.items.is_empty(), filter.workspace) {
        ensure_workspace_exists(state, workspace).await?;
    }
    Ok(listed)
}

/// Returns a request.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/requests/{request}", operation_id = "request_get", tag = "requests",
    params(("workspace" = uuid::Uuid, Path), ("request" = uuid::Uuid, Path)),
    responses((status = 200, body = Request), CommonResponses, NotFoundResponse))]
async fn get(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Path((workspace, id)): Path<(WorkspaceId, RequestId)>,
) -> ApiResult<Json<Request>> {
    call_memory::reserve(PARAMS_MAX_BYTES).await?;
    let found = state.store.request_get(workspace, id).await?;
    let request = found.ok_or_else(|| ApiError::not_found("request"))?;
    Ok(Json(convert::request(request, caller.payloads())))
}

/// Returns a request of any workspace.
#[utoipa::path(get, path = "/v1/requests/{request}", operation_id = "request_find", tag = "requests",
    params(("request" = uuid::Uuid, Path)), responses((status = 200, body = Request), CommonResponses, NotFoundResponse))]
async fn find(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<RequestId>,
) -> ApiResult<Json<Request>> {
    call_memory::reserve(PARAMS_MAX_BYTES).await?;
    let found = state.store.request_find(id).await?;
    let request = found.ok_or_else(|| ApiError::not_found("request"))?;
    Ok(Json(convert::request(request, caller.payloads())))
}

/// Lists every transition of a request, in order.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/requests/{request}/timeline", operation_id = "request_timeline",
    tag = "requests", params(("workspace" = uuid::Uuid, Path), ("request" = uuid::Uuid, Path)),
    responses((status = 200, body = Timeline), CommonResponses, NotFoundResponse))]
async fn timeline(
    AxumState(state): AxumState<State>,
    Path((workspace, id)): Path<(WorkspaceId, RequestId)>,
) -> ApiResult<Json<Timeline>> {
    call_memory::reserve(PARAMS_MAX_BYTES).await?;
    let events = state.store.request_timeline(workspace, id).await?;
    if events.is_empty() && state.store.request_get(workspace, id).await?.is_none() {
        return Err(ApiError::not_found("request"));
    }
    // Every request begins with the event of its enqueue.
    let beginning_pruned = events.first().is_none_or(|first| first.from.is_some());
    let events = events.into_iter().map(convert::event).collect();
    Ok(Json(Timeline {
        events,
        beginning_pruned,
    }))
}
