//! Builds the router: all routes and the layers in front of them.

use crate::api_error::ApiError;
use crate::metrics::CountedCall;
use crate::openapi::Api;
use crate::route::RoutePolicy;
use crate::state::State;
use crate::{call, routes as all};
use axum::Router;
use axum::extract::{MatchedPath, Request, State as AxumState};
use axum::http::{HeaderValue, Method, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use leasehold_api::Code;
use std::any::Any;
use std::sync::LazyLock;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::OpenApi;

/// Builds the API as a tower service. Needs no socket.
pub fn app(state: State) -> Router {
    let layered = |route: MethodRouter<State>, policy: RoutePolicy| {
        route.route_layer(from_fn_with_state((state.clone(), policy), call::guard))
    };
    let (router, _) = all::all()
        .into_router(Api::openapi(), layered)
        .split_for_parts();
    router
        .merge(all::about::page())
        .fallback(async || ApiError::new(Code::NotFound, "no route has this path; see /openapi.json"))
        .method_not_allowed_fallback(async || {
            ApiError::new(
                Code::MethodNotAllowed,
                "this route does not support the method; see the `Allow` header for those it supports",
            )
        })
        .layer(CatchPanicLayer::custom(|panic: Box<dyn Any + Send>| {
            internal_error(&*panic)
        }))
        .layer(from_fn_with_state(state.clone(), answer))
        .with_state(state)
}

/// Counts a call and adds the headers of every response.
async fn answer(
    AxumState(state): AxumState<State>,
    matched: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    let counted = CountedCall::begin(matched, request.method());
    let mut response = next.run(request).await;
    counted.end(&state, &response);
    let headers = response.headers_mut();
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    let nosniff = HeaderValue::from_static("nosniff");
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}

/// Returns the method and path of every route.
pub fn routes() -> Vec<(Method, String)> {
    let routes = all::all();
    let found = routes.list();
    found
        .map(|(method, path, ..)| (method, path.to_owned()))
        .collect()
}

/// Returns the method and path of every route that takes a body.
pub fn routes_with_body() -> Vec<(Method, String)> {
    let routes = all::all();
    let found = routes.list();
    found
        .filter(|(_, _, operation, _)| operation.request_body.is_some())
        .map(|(method, path, ..)| (method, path.to_owned()))
        .collect()
}

/// Returns the OpenAPI document as JSON.
pub(crate) fn document() -> &'static str {
    static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
        let bare = |route, _| route;
        let document = all::all().into_router(Api::openapi(), bare).into_openapi();
        document.to_json().unwrap_or_default()
    });
    &DOCUMENT
}

fn internal_error(panic: &(dyn Any + Send)) -> Response {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    tracing::error!(error = text, "request handler panicked");
    ApiError::new(Code::Internal, "internal error; see the server's log").into_response()
}
