//! Generates docs/reference/metrics.md from the metric definitions and compares it with the file. Rewrites the file if `LEASEHOLD_BLESS` is set.

#![allow(clippy::unwrap_used)]

use super::Metrics;
use std::fmt::Write;
use std::path::Path;

const PAGE: &str = "../../docs/reference/metrics.md";

const HEAD: &str = "\
# Metrics reference

Every metric that a server exposes at `GET /metrics`. This page is generated from the definitions in the program, and a test compares the two. [Metrics](../operations/metrics.md)
explains how to scrape and how to aggregate several instances; [Alerts](../operations/alerts.md) lists the alerts.

The names that begin with `queue_` and `shedlock_`, and `capacity_drift`, are fixed by the [requirements](../requirements.md). A metric of type *unknown (monotonic)* is a counter whose
name does not end in `_total`, so Prometheus does not accept the type *counter* for it.
";

/// Renders the whole page.
fn page(metrics: &Metrics) -> String {
    let mut page = HEAD.to_owned();
    let mut section = "";
    for entry in &metrics.catalog.entries {
        if entry.section != section {
            section = entry.section;
            let head = "| metric | type | labels | meaning |\n|---|---|---|---|";
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
fn reference_page_matches_the_definitions() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    leasehold_testkit::assert_snapshot_file(&path, &page(&Metrics::default()));
}
