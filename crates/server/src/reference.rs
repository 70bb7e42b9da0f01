//! docs/reference/api.md is made of the API's own description. This compares the two, and rewrites the page where `LEASEHOLD_BLESS` is set.

mod routes;
mod words;

use serde_json::Value;
use std::path::Path;

const PAGE: &str = "../../docs/reference/api.md";

const HEAD: &str = "\
# API reference

Every route and every document of the HTTP API. This page is made from the same description that a server has at `/openapi.json`, and a test keeps it true;
`/docs` on a server is the same to read and to try. What all calls have in common (keys, lists, problems, idempotency) is in the [guide](../api.md).

**Who** says whose key opens a route. Each call may also be answered with a [problem](../errors/README.md); under *Problems* are those that are about this route.
";

/// The whole page.
fn page(document: &Value) -> String {
    let mut page = HEAD.to_owned();
    routes::write(document, &mut page);
    words::write_documents(document, &mut page);
    page.replace("\n\n\n", "\n\n")
}

#[test]
fn the_reference_is_what_the_description_says() {
    let document: Value = serde_json::from_str(crate::app::document()).expect("it is JSON");
    let made = page(&document);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    leasehold_testkit::assert_kept(&path, &made);
}

#[test]
fn every_route_is_in_the_reference_with_who_may_call_it() {
    let document: Value = serde_json::from_str(crate::app::document()).expect("it is JSON");
    let made = page(&document);
    for (method, path) in crate::routes() {
        let heading = format!("### `{method} {path}`\n");
        let (_, section) = made.split_once(&heading).expect(&heading);
        let section = section.split("\n##").next().unwrap_or_default();
        assert!(section.contains("**Who:** "), "{heading}{section}");
    }
}
