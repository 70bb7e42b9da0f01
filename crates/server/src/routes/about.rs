//! The server itself: its health, the description of its API, and what its problems mean.

use crate::access::Access;
use crate::body::Json;
use crate::openapi::{Common, Unknown};
use crate::params::Path;
use crate::refusal::{Outcome, Refusal};
use crate::route::Routes;
use crate::state::State;
use crate::{errors, gauges};
use axum::Router;
use axum::extract::State as Reached;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::IntoResponse;
use leasehold_api::{Code, Problem};
use leasehold_telemetry::Format;
use serde::Serialize;
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
        .add(routes!(prometheus), Access::Admin.never_shed())
}

/// What the page may load and call: this server, and nothing else.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
    font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// A store that has not answered by then does not serve anybody.
const STORE_PATIENCE: Duration = Duration::from_secs(2);
/// How long that the store answered counts.
const READY_FOR: Duration = Duration::from_millis(500);
const TEXT: &str = "text/plain; charset=utf-8";

/// A page to try the API from a browser.
pub(crate) fn page() -> Router<State> {
    let config = utoipa_swagger_ui::Config::from("/openapi.json")
        .validator_url("none")
        .persist_authorization(false);
    let page: Router<State> = utoipa_swagger_ui::SwaggerUi::new("/docs")
        .config(config)
        .into();
    page.layer(SetResponseHeaderLayer::overriding(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(PAGE_POLICY),
    ))
}

/// That it is well.
#[derive(Serialize, ToSchema)]
struct Health {
    /// `ok`.
    status: &'static str,
}

/// Whether the process serves at all.
#[utoipa::path(get, path = "/healthz", tag = "about",
    responses((status = 200, body = Health)))]
async fn healthz() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Whether it can do its work: the store answers, and it has not been told to stop.
#[utoipa::path(get, path = "/readyz", tag = "about",
    responses((status = 200, body = Health), (status = 503, body = Problem, content_type = "application/problem+json")))]
async fn readyz(Reached(state): Reached<State>) -> Outcome<Json<Health>> {
    if state.stop.is_cancelled() {
        return Err(Refusal::of(Code::Overloaded, "the server is stopping"));
    }
    // Everybody may ask, so the store is asked once for all who do.
    let mut ready = state.ready.lock().await;
    if ready.is_some_and(|at| at.elapsed() < READY_FOR) {
        return Ok(Json(Health { status: "ok" }));
    }
    match tokio::time::timeout(STORE_PATIENCE, state.store.now()).await {
        Ok(Ok(_)) => {
            *ready = Some(Instant::now());
            Ok(Json(Health { status: "ok" }))
        }
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(Refusal::of(
            Code::StoreUnavailable,
            format!("the store has not answered within {STORE_PATIENCE:?}"),
        )),
    }
}

/// This description of the API.
#[utoipa::path(get, path = "/openapi.json", tag = "about",
    responses((status = 200, body = serde_json::Value, content_type = "application/json")))]
async fn openapi() -> impl IntoResponse {
    let json = (header::CONTENT_TYPE, "application/json");
    ([json], crate::app::document())
}

/// The JSON Schema of graphs, for editors.
#[utoipa::path(get, path = "/schemas/graph.json", tag = "about",
    responses((status = 200, body = serde_json::Value, content_type = "application/schema+json")))]
async fn graph_schema() -> impl IntoResponse {
    let json = (header::CONTENT_TYPE, "application/schema+json");
    ([json], include_str!("../../../../docs/graph.schema.json"))
}

/// Every code of a problem.
#[utoipa::path(get, path = "/errors", tag = "about",
    responses((status = 200, body = String, content_type = "text/plain")))]
async fn codes() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, TEXT)], errors::list())
}

/// What a code means, when it comes and what to do.
#[utoipa::path(get, path = "/errors/{code}", tag = "about", params(("code" = String, Path)),
    responses((status = 200, body = String, content_type = "text/plain"),
        (status = 400, body = Problem, content_type = "application/problem+json"), Unknown))]
async fn code(Path(name): Path<String>) -> Outcome<impl IntoResponse> {
    let page = errors::find(&name).ok_or_else(Refusal::not_found)?;
    Ok(([(header::CONTENT_TYPE, TEXT)], page))
}

/// What the server counts, for Prometheus: in OpenMetrics, with exemplars, where `Accept` names that, else in Prometheus' own text format.
#[utoipa::path(get, path = "/metrics", tag = "about",
    responses((status = 200, content((String = "text/plain"), (String = "application/openmetrics-text"))), Common))]
async fn prometheus(
    Reached(state): Reached<State>,
    headers: HeaderMap,
) -> Outcome<impl IntoResponse> {
    let accepts = headers.get_all(header::ACCEPT).iter();
    let format = Format::asked(accepts.filter_map(|accept| accept.to_str().ok()));
    let _held = gauges::fresh(&state).await;
    let shown = state.telemetry.metrics.shown(format).map_err(|error| {
        tracing::error!(%error, "the metrics cannot be shown");
        Refusal::of(Code::Internal, "the server failed; its log says why")
    })?;
    Ok(([(header::CONTENT_TYPE, format.content_type())], shown))
}
