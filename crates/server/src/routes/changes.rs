//! The change stream, as server-sent events or in pages: its parameters and limits. `change_stream` reads the changes.

use super::convert_requests;
use crate::access::{Access, Caller};
use crate::api_error::{ApiError, ApiResult};
use crate::body::Json;
use crate::call_memory;
use crate::call_owner::Owner;
use crate::change_stream::{self, ChangeSubscriber};
use crate::cursors::{ListCursors, page_limit};
use crate::openapi::{CommonResponses, CursorGoneResponse, NotFoundResponse};
use crate::owner_pool::OwnerPermit;
use crate::params::{Path, Query, header};
use crate::route::Routes;
use crate::state::State;
use axum::Extension;
use axum::extract::State as AxumState;
use axum::http::HeaderMap;
use axum::http::header::ACCEPT;
use axum::response::sse::Sse;
use axum::response::{IntoResponse, Response};
use leasehold_api::Code;
use leasehold_api::change::ChangePage;
use leasehold_core::WorkspaceId;
use leasehold_core::limits::ERROR_MAX_CHARS;
use leasehold_store::change::{ChangeCursor, ChangeStart};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .add(routes!(of_workspace), Access::Workspace)
        .add(routes!(of_all), Access::Admin)
}

const LAST_EVENT_ID: &str = "Last-Event-ID";
/// `Retry-After` in seconds when too many streams are open.
const RETRY_AFTER: u64 = 5;

/// Where the stream or page starts.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ChangesQuery {
    /// Start at the oldest retained change or at the current end. Default: `now`. Ignored if `after` or `Last-Event-ID` is given.
    #[param(inline)]
    from: Option<StartPosition>,
    /// Cursor: the `id` of the last event received, or the `next` of the previous page. The header `Last-Event-ID` takes precedence.
    after: Option<String>,
    /// Maximum number of changes of a page. Default: 100. A stream is not limited.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum StartPosition {
    Oldest,
    Now,
}

/// A server-sent event. Its data is JSON: an empty object for `ready`, an `Event` for `request`.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes the stream in the API's documentation")]
struct SentEvent {
    /// `ready` or `request`.
    event: Option<String>,
    /// JSON text.
    data: Option<String>,
    /// Cursor to resume after this event.
    id: Option<String>,
}

/// Streams the changes of a workspace's requests as server-sent events, or returns one page of them.
///
/// The first event, `ready`, has the cursor at which the stream starts. Every `request` event has one transition as its data and its cursor as its `id`.
/// A client that resumes after an id misses no change and receives none twice; if the database was restored, failed over or moved meanwhile, an id may
/// be refused with 410.
/// Without `Accept: text/event-stream` the response is one page of JSON; pass its `next` as `after` to continue.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/changes", operation_id = "change_stream", tag = "changes",
    params(("workspace" = uuid::Uuid, Path), ChangesQuery,
        ("Last-Event-ID" = Option<String>, Header, description = "The `id` of the last event received.")),
    responses((status = 200, content((SentEvent = "text/event-stream"), (ChangePage = "application/json"))), CursorGoneResponse, CommonResponses, NotFoundResponse))]
async fn of_workspace(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Path(workspace): Path<WorkspaceId>,
    Query(query): Query<ChangesQuery>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    if !change_stream::workspace_exists(&*state.store, workspace).await? {
        return Err(ApiError::not_found("workspace"));
    }
    open(state, caller, Some(workspace), query, &headers).await
}

/// Streams the changes of all requests as server-sent events, or returns one page of them.
#[utoipa::path(get, path = "/v1/changes", operation_id = "change_stream_of_all", tag = "changes",
    params(ChangesQuery, ("Last-Event-ID" = Option<String>, Header, description = "The `id` of the last event received.")),
    responses((status = 200, content((SentEvent = "text/event-stream"), (ChangePage = "application/json"))), CursorGoneResponse, CommonResponses))]
async fn of_all(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Query(query): Query<ChangesQuery>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    open(state, caller, None, query, &headers).await
}

async fn open(
    state: State,
    caller: Caller,
    workspace: Option<WorkspaceId>,
    query: ChangesQuery,
    headers: &HeaderMap,
) -> ApiResult<Response> {
    let limit = page_limit(query.limit)?;
    let list = match workspace {
        Some(_) => "change_stream",
        None => "change_stream_of_all",
    };
    let cursors = state.cursors.of(list, workspace).await?;
    let (start, name) = start_position(&cursors, query, headers)?;
    let invalid_cursor = |error| ApiError::from_cursor(error, name);
    if wants_page(headers) {
        let events = usize::try_from(limit).unwrap_or(usize::MAX);
        call_memory::reserve(events.saturating_mul(ERROR_MAX_CHARS)).await?;
        let page = state.store.change_list(&start, workspace, limit).await;
        let page = convert_requests::change_page(page.map_err(invalid_cursor)?, &cursors);
        return Ok(Json(page).into_response());
    }
    let permits = stream_permits(&state, &caller)?;
    let subscriber = ChangeSubscriber {
        key: caller.0,
        workspace,
        cursors,
        permits,
    };
    let events = change_stream::open(state, subscriber, start).await;
    let events = Sse::new(events.map_err(invalid_cursor)?);
    // Tells nginx not to buffer the response.
    Ok(([("x-accel-buffering", "no")], events).into_response())
}

/// Takes the permits of a stream: one of the owner's share of all streams, one of the key.
fn stream_permits(state: &State, caller: &Caller) -> ApiResult<Arc<[OwnerPermit; 2]>> {
    let refused = |detail| ApiError::new(Code::TooManyStreams, detail).retry_after(RETRY_AFTER);
    let of_key = state.streams_of_key.try_acquire(Owner::Key(caller.0.id));
    let of_key = of_key.map_err(|_| {
        let most = state.options.streams_per_key;
        refused(format!(
            "too many open change streams: this key has {most} (server.streams_per_key)"
        ))
    })?;
    let of_all = state.streams.try_acquire(Owner::of(&caller.0));
    let of_all =
        of_all.map_err(|full| refused(full.detail("open change streams", "server.streams_max")))?;
    Ok(Arc::new([of_all, of_key]))
}

/// Returns where to start, and the parameter that determines it.
fn start_position(
    cursors: &ListCursors<'_>,
    query: ChangesQuery,
    headers: &HeaderMap,
) -> ApiResult<(ChangeStart, &'static str)> {
    let given = |id: &String| !id.is_empty();
    let last_id = header(headers, LAST_EVENT_ID)?.filter(given);
    let after = |id: String, name: &'static str| match cursors.open(&id) {
        Some(position) => Ok((ChangeStart::After(ChangeCursor(position)), name)),
        None => {
            let problem = "must be a cursor of this stream; start again without a cursor";
            Err(ApiError::parameter(name, problem))
        }
    };
    Ok(match (last_id, query.after.filter(given)) {
        (Some(id), _) => after(id, LAST_EVENT_ID)?,
        (None, Some(id)) => after(id, "after")?,
        (None, None) => match query.from {
            Some(StartPosition::Oldest) => (ChangeStart::Oldest, "from"),
            Some(StartPosition::Now) | None => (ChangeStart::Now, "from"),
        },
    })
}

fn wants_page(headers: &HeaderMap) -> bool {
    let accepts = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    !accepts.is_some_and(|kinds| kinds.contains("text/event-stream"))
}
