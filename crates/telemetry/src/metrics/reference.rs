//! docs/reference/metrics.md is made of the metrics' own definitions. This compares the two, and rewrites the page where `LEASEHOLD_BLESS` is set.

#![allow(clippy::unwrap_used)]

use super::Metrics;
use std::fmt::Write;
use std::path::Path;

const PAGE: &str = "../../docs/reference/metrics.md";

const HEAD: &str = "\
# Metrics reference

Every metric that a server shows at `GET /metrics`. This page is made from the definitions in the program, and a test keeps it true. How to scrape, and how to add up
what several instances show, is in [Metrics](../operations/metrics.md); what to wake somebody for is in [Alerts](../operations/alerts.md).

The names that begin with `queue_` and `shedlock_`, and `capacity_drift`, are those of the original design. A metric of type *unknown* only rises, as a counter does; Prometheus would
not call a counter so.
";

/// The whole page.
fn page(metrics: &Metrics) -> String {
    let mut page = HEAD.to_owned();
    let mut section = "";
    for entry in &metrics.book.entries {
        if entry.section != section {
            section = entry.section;
            let head = "| metric | type | labels | what it says |\n|---|---|---|---|";
            writeln!(page, "\n## {section}\n\n{head}").unwrap();
        }
        let labels: Vec<String> = entry.labels.iter().map(|one| format!("`{one}`")).collect();
        let labels = labels.join(", ");
        let (name, kind, help) = (entry.name, entry.kind, entry.help);
        writeln!(page, "| `{name}` | {kind} | {labels} | {help} |").unwrap();
    }
    page
}

#[test]
fn the_reference_is_what_the_definitions_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    leasehold_testkit::assert_kept(&path, &page(&Metrics::default()));
}
