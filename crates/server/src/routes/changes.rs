//! The stream of changes, as server-sent events or a page at a time: where it begins, and who may listen. How it goes on stands in `stream`.

use super::shown_requests;
use crate::access::{Access, Caller};
use crate::body::Json;
use crate::openapi::{Common, Unknown};
use crate::params::{self, Path, Query, header};
use crate::refusal::{Outcome, Refusal};
use crate::route::{Deadline, Routes};
use crate::state::State;
use crate::stream::{self, Listener};
use axum::Extension;
use axum::extract::State as Reached;
use axum::http::HeaderMap;
use axum::http::header::ACCEPT;
use axum::response::sse::Sse;
use axum::response::{IntoResponse, Response};
use leasehold_api::Code;
use leasehold_api::change::ChangePage;
use leasehold_core::WorkspaceId;
use leasehold_store::change::{ChangeCursor, ChangeStart};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .add(
            routes!(of_workspace),
            Access::Workspace.deadline(Deadline::Unbounded),
        )
        .add(routes!(of_all), Access::Admin.deadline(Deadline::Unbounded))
}

const LAST_EVENT_ID: &str = "Last-Event-ID";
/// Seconds after which a stream may have ended.
const RETRY_AFTER: u64 = 5;

/// Where a stream begins.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Begin {
    /// At the oldest change kept, or now; now unless said. It is passed over where `after` or `Last-Event-ID` is given.
    #[param(inline)]
    from: Option<From>,
    /// The `id` of the last event seen, or `next` of the page before; the header `Last-Event-ID` says it as well, and before this.
    after: Option<String>,
    /// How many changes of a page at most, 100 unless said; a stream has no end.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum From {
    Oldest,
    Now,
}

/// An event of the stream as it is sent. The data is JSON: of `ready` an empty object, of `request` what the timeline shows as an event.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes the stream in the API's documentation")]
struct SentEvent {
    /// `ready` or `request`.
    event: Option<String>,
    /// JSON.
    data: Option<String>,
    /// Where to go on after this one.
    id: Option<String>,
}

/// The changes of a workspace's requests, as server-sent events or a page at a time.
///
/// `event: ready` says where the stream begins;
/// every `event: request` has one transition as its data and its place as its `id`. Whoever goes on after an id misses and repeats nothing.
/// Whoever does not ask for `text/event-stream` gets one page as JSON instead, whose `next` is the place to go on.
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/changes", operation_id = "change_stream", tag = "changes",
    params(("workspace" = uuid::Uuid, Path), Begin,
        ("Last-Event-ID" = Option<String>, Header, description = "The `id` of the last event seen.")),
    responses((status = 200, content((SentEvent = "text/event-stream"), (ChangePage = "application/json"))), Common, Unknown))]
async fn of_workspace(
    Reached(state): Reached<State>,
    Extension(caller): Extension<Caller>,
    Path(workspace): Path<WorkspaceId>,
    Query(begin): Query<Begin>,
    headers: HeaderMap,
) -> Outcome<Response> {
    if !stream::is_there(&*state.store, workspace).await? {
        return Err(Refusal::not_found());
    }
    open(state, caller, Some(workspace), begin, &headers).await
}

/// The changes of all requests, as server-sent events or a page at a time.
#[utoipa::path(get, path = "/v1/changes", operation_id = "change_stream_of_all", tag = "changes",
    params(Begin, ("Last-Event-ID" = Option<String>, Header, description = "The `id` of the last event seen.")),
    responses((status = 200, content((SentEvent = "text/event-stream"), (ChangePage = "application/json"))), Common))]
async fn of_all(
    Reached(state): Reached<State>,
    Extension(caller): Extension<Caller>,
    Query(begin): Query<Begin>,
    headers: HeaderMap,
) -> Outcome<Response> {
    open(state, caller, None, begin, &headers).await
}

async fn open(
    state: State,
    caller: Caller,
    workspace: Option<WorkspaceId>,
    begin: Begin,
    headers: &HeaderMap,
) -> Outcome<Response> {
    let limit = params::paged::<String>(None, begin.limit)?.limit;
    let (start, name) = beginning(begin, headers)?;
    let wrong_place = |error| Refusal::of_cursor(error, name);
    if wants_a_page(headers) {
        let page = state.store.change_list(&start, workspace, limit).await;
        let page = shown_requests::change_page(page.map_err(wrong_place)?);
        return Ok(Json(page).into_response());
    }
    let Some(place) = state.streams.enter(caller.0.id) else {
        let detail = "the key or the server has as many streams open as it may";
        return Err(Refusal::of(Code::TooManyStreams, detail).retry_after(RETRY_AFTER));
    };
    let listener = Listener {
        key: caller.0,
        workspace,
        _place: place,
    };
    let events = stream::begin(state, listener, start).await;
    let events = Sse::new(events.map_err(wrong_place)?);
    // Proxies that gather answers before they pass them on shall not gather this one.
    Ok(([("x-accel-buffering", "no")], events).into_response())
}

/// Where to begin, and the parameter that says so.
fn beginning(begin: Begin, headers: &HeaderMap) -> Outcome<(ChangeStart, &'static str)> {
    let given = |id: &String| !id.is_empty();
    let last_id = header(headers, LAST_EVENT_ID)?.filter(given);
    Ok(match (last_id, begin.after.filter(given)) {
        (Some(id), _) => (ChangeStart::After(ChangeCursor(id)), LAST_EVENT_ID),
        (None, Some(id)) => (ChangeStart::After(ChangeCursor(id)), "after"),
        (None, None) => match begin.from {
            Some(From::Oldest) => (ChangeStart::Oldest, "from"),
            Some(From::Now) | None => (ChangeStart::Now, "from"),
        },
    })
}

fn wants_a_page(headers: &HeaderMap) -> bool {
    let accepts = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    !accepts.is_some_and(|kinds| kinds.contains("text/event-stream"))
}
