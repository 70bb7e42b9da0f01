//! All routes put together, with the layers that every call passes.

use crate::openapi::Api;
use crate::refusal::Refusal;
use crate::state::State;
use crate::{access, deadline, metrics, rate, room, routes as all, trace};
use axum::Router;
use axum::http::{HeaderValue, Method, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use leasehold_api::Code;
use std::any::Any;
use std::sync::LazyLock;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::set_header::SetResponseHeaderLayer;
use utoipa::OpenApi;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa_axum::router::OpenApiRouter;

/// The API as a service; it needs no socket.
pub fn app(state: State) -> Router {
    let (router, _) = described();
    router
        .route_layer(from_fn_with_state(state.clone(), rate::rate))
        // Behind the guard, so that nobody without a key makes spans.
        .route_layer(from_fn_with_state(state.clone(), trace::trace))
        .route_layer(from_fn_with_state(state.clone(), access::guard))
        .route_layer(from_fn_with_state(state.clone(), room::room))
        .route_layer(from_fn_with_state(state.clone(), deadline::deadline))
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

/// Every route there is, as method and path.
pub fn routes() -> Vec<(Method, String)> {
    operations(|_| true)
}

/// Those that take a body.
pub fn routes_with_body() -> Vec<(Method, String)> {
    operations(|operation| operation.request_body.is_some())
}

fn operations(wanted: impl Fn(&Operation) -> bool) -> Vec<(Method, String)> {
    let (_, document) = described();
    let mut found = Vec::new();
    for (path, item) in &document.paths.paths {
        for (operation, method) in of_methods(item) {
            if operation.as_ref().is_some_and(&wanted) {
                found.push((method, path.clone()));
            }
        }
    }
    found
}

/// The description of the API, as JSON.
pub(crate) fn document() -> &'static str {
    static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
        let (_, document) = described();
        document.to_json().unwrap_or_default()
    });
    &DOCUMENT
}

fn described() -> (Router<State>, utoipa::openapi::OpenApi) {
    OpenApiRouter::with_openapi(Api::openapi())
        .merge(all::all())
        .split_for_parts()
}

fn of_methods(item: &PathItem) -> [(&Option<Operation>, Method); 8] {
    [
        (&item.get, Method::GET),
        (&item.post, Method::POST),
        (&item.put, Method::PUT),
        (&item.patch, Method::PATCH),
        (&item.delete, Method::DELETE),
        (&item.head, Method::HEAD),
        (&item.options, Method::OPTIONS),
        (&item.trace, Method::TRACE),
    ]
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
