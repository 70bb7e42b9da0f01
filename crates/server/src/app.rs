//! All routes put together, with the layers that every call passes.

use crate::openapi::Api;
use crate::refusal::Refusal;
use crate::route::RoutePolicy;
use crate::state::State;
use crate::{access, deadline, metrics, rate, room, routes as all, trace};
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

/// The API as a service; it needs no socket.
pub fn app(state: State) -> Router {
    let layered = |route, policy| layered(route, policy, &state);
    let (router, _) = all::all()
        .into_router(Api::openapi(), layered)
        .split_for_parts();
    router
        .merge(all::about::page())
        .fallback(async || Refusal::not_found())
        .method_not_allowed_fallback(async || {
            Refusal::of(
                Code::MethodNotAllowed,
                "the header `Allow` says which methods there are",
            )
        })
        .layer(CatchPanicLayer::custom(|panic: Box<dyn Any + Send>| {
            panicked(&*panic)
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

/// The layers of every route, the outermost last. The policy is outside all of them, so that each can read it.
fn layered(route: MethodRouter<State>, policy: RoutePolicy, state: &State) -> MethodRouter<State> {
    route
        .route_layer(from_fn_with_state(state.clone(), rate::rate))
        // Behind the guard, so that nobody without a key makes spans.
        .route_layer(from_fn_with_state(state.clone(), trace::trace))
        .route_layer(from_fn_with_state(state.clone(), access::guard))
        .route_layer(from_fn_with_state(state.clone(), room::room))
        .route_layer(from_fn_with_state(state.clone(), deadline::deadline))
        .route_layer(Extension(policy))
}

/// Every route there is, as method and path.
pub fn routes() -> Vec<(Method, String)> {
    let routes = all::all();
    let found = routes.list();
    found
        .map(|(method, path, ..)| (method, path.to_owned()))
        .collect()
}

/// Those that take a body.
pub fn routes_with_body() -> Vec<(Method, String)> {
    let routes = all::all();
    let found = routes.list();
    found
        .filter(|(_, _, operation, _)| operation.request_body.is_some())
        .map(|(method, path, ..)| (method, path.to_owned()))
        .collect()
}

/// The description of the API, as JSON.
pub(crate) fn document() -> &'static str {
    static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
        let bare = |route, _| route;
        let document = all::all().into_router(Api::openapi(), bare).into_openapi();
        document.to_json().unwrap_or_default()
    });
    &DOCUMENT
}

fn panicked(panic: &(dyn Any + Send)) -> Response {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    tracing::error!(error = text, "a call panicked");
    Refusal::of(Code::Internal, "the server failed; its log says why").into_response()
}
