//! Builds the router: all routes and the layers in front of them.

use crate::api_error::ApiError;
use crate::openapi::Api;
use crate::route::RoutePolicy;
use crate::state::State;
use crate::{access, call_memory, deadline, load_shed, metrics, rate_limit, routes as all, trace};
use axum::http::{HeaderValue, Method, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use axum::{Extension, Router};
use leasehold_api::Code;
use std::any::Any;
use std::sync::LazyLock;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::set_header::SetResponseHeaderLayer;
use utoipa::OpenApi;

/// Builds the API as a tower service. Needs no socket.
pub fn app(state: State) -> Router {
    let layered = |route, policy| layered(route, policy, &state);
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
        .layer(SetResponseHeaderLayer::if_not_present(
            header::CACHE_CONTROL,
            HeaderValue::from_static("no-store"),
        ))
        .layer(SetResponseHeaderLayer::overriding(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ))
        .layer(from_fn_with_state(state.clone(), metrics::count))
        .with_state(state)
}

/// Adds the layers of every route, outermost last. The policy is the outermost layer, so each layer can read it.
fn layered(route: MethodRouter<State>, policy: RoutePolicy, state: &State) -> MethodRouter<State> {
    route
        // Innermost: inside authorization, which knows the caller, and without the responses of the layers.
        .route_layer(from_fn_with_state(
            state.clone(),
            call_memory::hold_response,
        ))
        .route_layer(from_fn_with_state(state.clone(), rate_limit::limit_rate))
        // Inside authorization, so that only callers with a key create spans.
        .route_layer(from_fn_with_state(state.clone(), trace::trace))
        // Inside authorization too: calls are counted by workspace or key.
        .route_layer(from_fn_with_state(state.clone(), load_shed::shed_load))
        .route_layer(from_fn_with_state(state.clone(), access::authorize))
        .route_layer(from_fn_with_state(state.clone(), deadline::apply_deadline))
        .route_layer(Extension(policy))
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
