//! Generates docs/reference/api.md from the OpenAPI document. The test compares the two, and rewrites the page if `LEASEHOLD_BLESS` is set.

mod routes;
mod schema;

use serde_json::Value;
use std::path::Path;

const PAGE: &str = "../../docs/reference/api.md";

const HEAD: &str = "\
# API reference

All routes and JSON documents of the HTTP API. This page is generated from the OpenAPI document that a server has at `/openapi.json`, and a test keeps it up to date.
`/docs` on a server is the same reference, interactive. The [guide](../api.md) describes what all calls have in common: keys, lists, problems, idempotency.

**Access** is the kind of key that a route requires. Every call may also return a [problem](../errors/README.md); *Problems* lists those specific to the route.
";

/// Builds the page.
fn page(document: &Value) -> String {
    let mut page = HEAD.to_owned();
    routes::write(document, &mut page);
    schema::write_documents(document, &mut page);
    page.replace("\n\n\n", "\n\n")
}

#[test]
fn reference_page_matches_the_openapi_document() {
    let document: Value =
        serde_json::from_str(crate::app::document()).expect("the OpenAPI document is JSON");
    let page_text = page(&document);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    leasehold_testkit::assert_snapshot_file(&path, &page_text);
}

#[test]
fn every_route_is_in_the_reference_with_its_access() {
    let document: Value =
        serde_json::from_str(crate::app::document()).expect("the OpenAPI document is JSON");
    let page_text = page(&document);
    for (method, path) in crate::routes() {
        let heading = format!("### `{method} {path}`\n");
        let (_, section) = page_text.split_once(&heading).expect(&heading);
        let section = section.split("\n##").next().unwrap_or_default();
        assert!(section.contains("**Access:** "), "{heading}{section}");
    }
}
