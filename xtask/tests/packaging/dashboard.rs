//! The Grafana dashboard: structure, layout and queries.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::documents::names;
use crate::series::assert_queries;
use crate::text;

fn dashboard() -> Value {
    serde_json::from_str(&text("packaging/grafana/leasehold.json")).unwrap()
}

fn panels(dashboard: &Value) -> &Vec<Value> {
    dashboard["panels"].as_array().unwrap()
}

#[test]
fn dashboard_is_portable() {
    let dashboard = dashboard();
    assert!(dashboard["schemaVersion"].as_u64().unwrap() >= 39);
    assert!(dashboard["id"].is_null(), "Grafana assigns the id");
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let known: Vec<&str> = variables
        .iter()
        .map(|v| v["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        known,
        ["datasource", "job", "instance", "workspace", "queue"]
    );
    for panel in panels(&dashboard) {
        if panel["type"] == "row" {
            continue;
        }
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{panel}");
        assert!(!panel["description"].as_str().unwrap().is_empty());
        for target in panel["targets"].as_array().unwrap() {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{target}");
            let expr = target["expr"].as_str().unwrap();
            for name in expr.split('$').skip(1) {
                let end = name.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
                let name = &name[..end.unwrap_or(name.len())];
                assert!(name == "__rate_interval" || known.contains(&name), "{expr}");
            }
        }
    }
}

#[test]
fn panels_have_unique_ids_and_do_not_overlap() {
    let dashboard = dashboard();
    let mut ids = BTreeSet::new();
    let mut taken = BTreeSet::new();
    for panel in panels(&dashboard) {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
        let place = &panel["gridPos"];
        assert_eq!(names(place), ["h", "w", "x", "y"]);
        let [height, width, left, top] = ["h", "w", "x", "y"].map(|n| place[n].as_u64().unwrap());
        assert!(left + width <= 24, "{panel}");
        for x in left..left + width {
            for y in top..top + height {
                assert!(taken.insert((x, y)), "{panel} overlaps another panel");
            }
        }
    }
}

#[test]
fn rows_have_panels_in_order() {
    let dashboard = dashboard();
    let mut rows: Vec<(&str, usize)> = Vec::new();
    for panel in panels(&dashboard) {
        if panel["type"] == "row" {
            rows.push((panel["title"].as_str().unwrap(), 0));
        } else {
            rows.last_mut().unwrap().1 += 1;
        }
    }
    let titles: Vec<&str> = rows.iter().map(|(title, _)| *title).collect();
    let expected = [
        "Health",
        "Requests",
        "Workspaces",
        "Dispatch",
        "Leases, locks and drift",
        "Jobs and queues",
        "Engine and store",
        "HTTP",
        "Process",
    ];
    assert_eq!(titles, expected);
    assert!(rows.iter().all(|(_, panels)| *panels >= 2), "{rows:?}");
}

#[test]
fn queries_are_valid() {
    let dashboard = dashboard();
    let targets = panels(&dashboard)
        .iter()
        .flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let queries: Vec<String> = targets
        .map(|target| {
            target["expr"]
                .as_str()
                .unwrap()
                .replace("$__rate_interval", "5m")
        })
        .collect();
    assert!(queries.len() > 50);
    assert_queries(&queries);
}
