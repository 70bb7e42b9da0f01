//! Routes about the server itself: health, metrics, OpenAPI document, problem codes.

use crate::access::Access;
use crate::api_error::{ApiError, ApiResult};
use crate::body::Json;
use crate::call_task;
use crate::openapi::{CommonResponses, NotFoundResponse};
use crate::params::Path;
use crate::route::Routes;
use crate::state::State;
use crate::{errors, gauges};
use axum::Router;
use axum::extract::State as AxumState;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::IntoResponse;
use leasehold_api::{Code, Problem};
use leasehold_telemetry::ExpositionFormat;
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tower_http::set_header::SetResponseHeaderLayer;
use utoipa::ToSchema;
use utoipa_axum::routes;

pub(crate) fn routes() -> Routes {
    Routes::default()
        .add(routes!(healthz), Access::Open.never_shed())
        .add(routes!(readyz), Access::Open.never_shed())
        .add(routes!(openapi), Access::Open)
        .add(routes!(graph_schema), Access::Open)
        .add(routes!(codes), Access::Open)
        .add(routes!(code), Access::Open)
        .add(routes!(prometheus), Access::Metrics.never_shed())
}

/// The Content-Security-Policy of `/docs`: only this server.
const DOCS_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
    font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// Time limit after which the store counts as unavailable.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a successful check of the store is reused.
const READY_CACHED_FOR: Duration = Duration::from_millis(500);
const TEXT: &str = "text/plain; charset=utf-8";

/// The interactive API page.
pub(crate) fn page() -> Router<State> {
    let config = utoipa_swagger_ui::Config::from("/openapi.json")
        .validator_url("none")
        .persist_authorization(false);
    let page: Router<State> = utoipa_swagger_ui::SwaggerUi::new("/docs")
        .config(config)
        .into();
    page.layer(SetResponseHeaderLayer::overriding(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(DOCS_POLICY),
    ))
}

/// The health of the server.
#[derive(Serialize, ToSchema)]
struct Health {
    /// Always `ok`.
    status: &'static str,
}

/// Liveness: the process serves HTTP.
#[utoipa::path(get, path = "/healthz", tag = "about",
    responses((status = 200, body = Health)))]
async fn healthz() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Readiness: the store answers and the server is not stopping.
#[utoipa::path(get, path = "/readyz", tag = "about",
    responses((status = 200, body = Health), (status = 503, body = Problem, content_type = "application/problem+json")))]
async fn readyz(AxumState(state): AxumState<State>) -> ApiResult<Json<Health>> {
    if state.stop.is_cancelled() {
        return Err(ApiError::new(Code::Overloaded, "the server is stopping"));
    }
    match tokio::time::timeout(STORE_TIMEOUT, check_store(&state)).await {
        Ok(Ok(())) => Ok(Json(Health { status: "ok" })),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(ApiError::new(
            Code::StoreUnavailable,
            format!("the store did not answer within {STORE_TIMEOUT:?}"),
        )),
    }
}

/// Checks that the store answers. The route needs no key, so all callers share one check, which runs to its end even if they disconnect.
async fn check_store(state: &State) -> leasehold_store::Result<()> {
    let mut ready = Arc::clone(&state.ready).lock_owned().await;
    if ready.is_some_and(|at| at.elapsed() < READY_CACHED_FOR) {
        return Ok(());
    }
    let store = state.store.clone();
    call_task::run(async move {
        store.now().await?;
        *ready = Some(Instant::now());
        Ok(())
    })
    .await
}

/// The OpenAPI document of this API.
#[utoipa::path(get, path = "/openapi.json", tag = "about",
    responses((status = 200, body = serde_json::Value, content_type = "application/json")))]
async fn openapi() -> impl IntoResponse {
    let json = (header::CONTENT_TYPE, "application/json");
    ([json], crate::app::document())
}

/// The JSON Schema of graphs, for editors and validators.
#[utoipa::path(get, path = "/schemas/graph.json", tag = "about",
    responses((status = 200, body = serde_json::Value, content_type = "application/schema+json")))]
async fn graph_schema() -> impl IntoResponse {
    let json = (header::CONTENT_TYPE, "application/schema+json");
    ([json], include_str!("../../../../docs/graph.schema.json"))
}

/// All problem codes.
#[utoipa::path(get, path = "/errors", tag = "about",
    responses((status = 200, body = String, content_type = "text/plain")))]
async fn codes() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, TEXT)], errors::list())
}

/// The page of a problem code: meaning, causes and what to do.
#[utoipa::path(get, path = "/errors/{code}", tag = "about", params(("code" = String, Path)),
    responses((status = 200, body = String, content_type = "text/plain"),
        (status = 400, body = Problem, content_type = "application/problem+json"), NotFoundResponse))]
async fn code(Path(name): Path<String>) -> ApiResult<impl IntoResponse> {
    let page = errors::find(&name).ok_or_else(|| ApiError::not_found("problem code"))?;
    Ok(([(header::CONTENT_TYPE, TEXT)], page))
}

/// Metrics for Prometheus: OpenMetrics with exemplars if `Accept` names it, otherwise the Prometheus text format.
#[utoipa::path(get, path = "/metrics", tag = "about",
    responses((status = 200, content((String = "text/plain"), (String = "application/openmetrics-text"))), CommonResponses))]
async fn prometheus(
    AxumState(state): AxumState<State>,
    headers: HeaderMap,
) -> ApiResult<impl IntoResponse> {
    let accepts = headers.get_all(header::ACCEPT).iter();
    let format = ExpositionFormat::negotiate(accepts.filter_map(|accept| accept.to_str().ok()));
    let _guard = gauges::refresh(&state).await;
    let shown = state.telemetry.metrics.render(format).map_err(|error| {
        tracing::error!(%error, "failed to encode metrics");
        ApiError::new(Code::Internal, "internal error; see the server's log")
    })?;
    Ok(([(header::CONTENT_TYPE, format.content_type())], shown))
}
