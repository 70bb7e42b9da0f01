//! The OpenAPI 3.1 document, generated from the routes, and the problem responses that routes declare.

use leasehold_api::{Code, Problem};
use std::collections::BTreeMap;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder};
use utoipa::{IntoResponses, Modify, OpenApi};

/// The document's header.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Leasehold",
        description = "Multi-tenant execution queue and job queue in front of a workflow engine. Every call except health checks and documentation needs an API key: `Authorization: Bearer …`. \
            Errors are RFC 9457 problem documents with a stable `code`; `/errors/{code}` explains each."
    ),
    security(("key" = [])),
    components(schemas(Problem)),
    modifiers(&BearerKeyScheme)
)]
pub(crate) struct Api;

struct BearerKeyScheme;

impl Modify for BearerKeyScheme {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let key = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        let components = openapi.components.get_or_insert_default();
        components.add_security_scheme("key", SecurityScheme::Http(key));
    }
}

/// The problems that any call with a key may return.
pub(crate) struct CommonResponses;

/// The problems with status 404.
pub(crate) struct NotFoundResponse;

/// The problems with status 409.
pub(crate) struct ConflictResponse;

/// The problems with status 410.
pub(crate) struct CursorGoneResponse;

type Responses = BTreeMap<String, RefOr<Response>>;

impl IntoResponses for CommonResponses {
    fn responses() -> Responses {
        problems(|status| !matches!(status, 404 | 405 | 409 | 410))
    }
}

impl IntoResponses for NotFoundResponse {
    fn responses() -> Responses {
        problems(|status| status == 404)
    }
}

impl IntoResponses for ConflictResponse {
    fn responses() -> Responses {
        problems(|status| status == 409)
    }
}

impl IntoResponses for CursorGoneResponse {
    fn responses() -> Responses {
        problems(|status| status == 410)
    }
}

/// Returns a response for each selected status, with its codes.
fn problems(is_selected: impl Fn(u16) -> bool) -> Responses {
    let mut by_status: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
    for code in Code::ALL {
        if is_selected(code.status()) {
            by_status
                .entry(code.status())
                .or_default()
                .push(code.as_str());
        }
    }
    by_status
        .into_iter()
        .map(|(status, codes)| {
            let schema = Ref::from_schema_name("Problem");
            let content = ContentBuilder::new().schema(Some(schema)).build();
            let response = ResponseBuilder::new()
                .description(codes.join(", "))
                .content("application/problem+json", content)
                .build();
            (status.to_string(), RefOr::T(response))
        })
        .collect()
}
