//! The API described: OpenAPI 3.1 made from the routes themselves, and a page for every code of a problem.

use leasehold_api::{Code, Problem};
use std::collections::BTreeMap;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder};
use utoipa::{IntoResponses, Modify, OpenApi};

/// What is said of the API as a whole.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Leasehold",
        description = "The multi-tenant front door of a workflow engine. Every call but those of health needs a key: `Authorization: Bearer …`. \
            Problems are RFC 9457 documents with a stable `code`; `/errors/{code}` explains each."
    ),
    security(("key" = [])),
    components(schemas(Problem)),
    modifiers(&WithKeys)
)]
pub(crate) struct Api;

struct WithKeys;

impl Modify for WithKeys {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let key = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        let components = openapi.components.get_or_insert_default();
        components.add_security_scheme("key", SecurityScheme::Http(key));
    }
}

/// What any call with a key may be answered instead.
pub(crate) struct Common;

/// That something is not there.
pub(crate) struct Unknown;

/// That something stands in the way.
pub(crate) struct Conflict;

type Responses = BTreeMap<String, RefOr<Response>>;

impl IntoResponses for Common {
    fn responses() -> Responses {
        problems(|status| !matches!(status, 404 | 405 | 409))
    }
}

impl IntoResponses for Unknown {
    fn responses() -> Responses {
        problems(|status| status == 404)
    }
}

impl IntoResponses for Conflict {
    fn responses() -> Responses {
        problems(|status| status == 409)
    }
}

/// The codes with such a status, by status.
fn problems(wanted: impl Fn(u16) -> bool) -> Responses {
    let mut by_status: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
    for code in Code::ALL {
        if wanted(code.status()) {
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
