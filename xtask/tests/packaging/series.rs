//! The known series, from the metrics reference and the recording rules; checks that queries are valid and use only those.

use std::collections::BTreeSet;
use std::fs;

use crate::alerts::rules;
use crate::{promtool, text};

/// Prefixes of our series.
const OURS: [&str; 6] = [
    "queue_",
    "leasehold_",
    "leasehold:",
    "shedlock_",
    "capacity_",
    "process_",
];

/// The unknown series of a query.
pub(crate) fn unknown(query: &str) -> Vec<String> {
    let known = known();
    let named = named(query).into_iter();
    named.filter(|name| !known.contains(name)).collect()
}

/// Asserts that each query is valid and uses only known series.
#[track_caller]
pub(crate) fn assert_queries(queries: &[String]) {
    let mut file = "groups:\n  - name: queries\n    rules:\n".to_owned();
    for (number, query) in queries.iter().enumerate() {
        let unknown = unknown(query);
        assert!(unknown.is_empty(), "{query}: {unknown:?}");
        let quoted = query.replace('\'', "''");
        file += &format!("      - record: query_{number}\n        expr: '{quoted}'\n");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("queries.yml");
    fs::write(&path, file).unwrap();
    promtool(&["check", "rules", path.to_str().unwrap()]).must_succeed();
}

/// The series of a process and of the recording rules.
fn known() -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    for line in text("docs/reference/metrics.md").lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, name, kind, ..] = cells[..] else {
            continue;
        };
        let Some(name) = name.strip_prefix('`').and_then(|n| n.strip_suffix('`')) else {
            continue;
        };
        if kind == "histogram" {
            known.extend(["bucket", "sum", "count"].map(|end| format!("{name}_{end}")));
        } else {
            known.insert(name.to_owned());
        }
    }
    assert!(known.len() > 40, "the reference should list the metrics");
    let recorded = rules("record").into_iter();
    known.extend(recorded.map(|rule| rule["record"].as_str().unwrap().to_owned()));
    known
}

/// Our series in a query, without label matchers.
fn named(query: &str) -> BTreeSet<String> {
    let mut depth = 0;
    let outside: String = query
        .chars()
        .filter(|char| {
            match char {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => return depth == 0,
            }
            false
        })
        .collect();
    let words = outside.split(|c: char| !(c.is_ascii_alphanumeric() || "_:".contains(c)));
    words
        .filter(|word| OURS.iter().any(|begin| word.starts_with(begin)))
        .map(str::to_owned)
        .collect()
}

#[test]
fn misspelt_series_is_found() {
    let query = r#"sum by (job) (rate(queue_items_dispached_total{reason!="x"}[5m])) / leasehold_workspaces"#;
    assert_eq!(unknown(query), ["queue_items_dispached_total"]);
    // A histogram is no series by itself.
    assert_eq!(unknown("leasehold_dispatch_attempts").len(), 1);
}
