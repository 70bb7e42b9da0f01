//! All metrics together: each is described once and exposed in both formats with its documented labels.

#![allow(clippy::unwrap_used)]

use super::labels::Route;
use super::{EngineSnapshot, ExpositionFormat, Metrics, StoreSeries, StoreSnapshot};
use crate::metrics::EngineSeries;
use leasehold_core::breaker::BreakerState;
use leasehold_core::queue::QueueSettings;
use leasehold_core::{Plan, Timestamp};
use leasehold_store::lock::LockToken;
use leasehold_store::queue::{Queue, QueueUse};
use leasehold_store::request::{Counts, Oldest};
use leasehold_store::workspace::{SlotUse, Workspace, WorkspaceOverview, WorkspaceUse};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Absent until a first value with such a label is recorded.
const INITIALLY_ABSENT: [&str; 23] = [
    "leasehold_engine_allowance",
    "leasehold_engine_breaker",
    "leasehold_engine_call_duration_seconds",
    "leasehold_engine_calls_total",
    "leasehold_engine_up",
    "leasehold_http_request_duration_seconds",
    "leasehold_http_requests_total",
    "leasehold_jobs_claimed_total",
    "leasehold_jobs_enqueued_total",
    "leasehold_lock_held",
    "leasehold_lock_losses_total",
    "leasehold_queue_jobs",
    "leasehold_queue_limit",
    "leasehold_requests",
    "leasehold_requests_oldest_seconds",
    "leasehold_requests_start_failing",
    "leasehold_requests_startable_oldest_seconds",
    "leasehold_store_call_duration_seconds",
    "leasehold_store_calls_total",
    "leasehold_workspace_requests",
    "leasehold_workspace_slots",
    "leasehold_workspace_slots_in_use",
    "leasehold_workspaces",
];

fn snapshot() -> StoreSnapshot {
    let at = Timestamp::from_second(1_000).unwrap();
    let requests = Counts {
        pending: 7,
        claimed: 1,
        dispatched: 2,
        completed: 30,
        failed: 4,
    };
    let workspace = Workspace {
        id: leasehold_store::fresh_id(),
        name: "acme".to_owned(),
        plan: Plan::Pro,
        limit_override: None,
        max_pending_override: None,
        max_open_bytes_override: None,
        paused: false,
        created_at: at,
        deleted_at: None,
    };
    let busy = WorkspaceUse {
        workspace,
        slots: SlotUse {
            limit: 5,
            in_use: 2,
        },
        requests: Counts {
            pending: 3,
            dispatched: 2,
            ..Counts::default()
        },
    };
    let settings = QueueSettings {
        limit: Some(8),
        ..QueueSettings::default()
    };
    StoreSnapshot {
        workspaces: WorkspaceOverview {
            at,
            workspaces: 12,
            requests,
            busiest: vec![busy],
        },
        queues: vec![QueueUse {
            queue: Queue {
                name: "mails".to_owned(),
                settings,
                created_at: at,
            },
            running: 3,
            waiting: 9,
            more_waiting: false,
        }],
        oldest: Oldest {
            at,
            pending: Some(Timestamp::from_second(940).unwrap()),
            startable: None,
            claimed: None,
            dispatched: Some(Timestamp::from_second(1_001).unwrap()),
        },
    }
}

/// Returns metrics in which every series has a value.
fn populated() -> Metrics {
    let metrics = Metrics::default();
    metrics.set_store_gauges(&snapshot());
    metrics.set_engine_gauges(Some(&EngineSnapshot {
        healthy: true,
        breaker: BreakerState::Closed,
        allowance: 64,
        start_failing: 0,
    }));
    let route = Route {
        method: "GET",
        route: "/v1/me".into(),
    };
    let took = Duration::from_millis(3);
    metrics.call_answered(&route, 200, took, None);
    metrics.jobs_enqueued("mails", 2);
    metrics.lock_refused("processExecutionQueue");
    StoreSeries::new(&metrics, "now").record(took, None);
    EngineSeries::new(&metrics, "embedded", "start", &["started"]).record(took, "started");
    metrics
}

/// Returns the exposed names, each with the labels of its series.
fn exposed(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut exposed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut name = String::new();
    for line in text.lines() {
        if let Some(typed) = line.strip_prefix("# TYPE ") {
            name = typed.split(' ').next().unwrap().to_owned();
            continue;
        }
        let Some(rest) = line.strip_prefix(&*name).filter(|_| !line.starts_with('#')) else {
            continue;
        };
        let labels = exposed.entry(name.clone()).or_default();
        if let Some((_, inside)) = rest
            .rsplit_once('}')
            .and_then(|(head, _)| head.split_once('{'))
        {
            let found = inside.split(',').filter_map(|pair| pair.split_once('='));
            labels.extend(
                found
                    .map(|(label, _)| label.to_owned())
                    .filter(|label| label != "le"),
            );
        }
    }
    exposed
}

#[test]
fn every_metric_is_described_once_and_exposed_with_its_labels() {
    let metrics = populated();
    let text = metrics.render(ExpositionFormat::Prometheus).unwrap();
    let exposed = exposed(&text);
    let mut described = BTreeMap::new();
    for entry in &metrics.catalog.entries {
        let labels = entry
            .labels
            .iter()
            .map(|label| (*label).to_owned())
            .collect();
        let twice = described.insert(entry.name.to_owned(), labels);
        assert!(twice.is_none(), "{} is described twice", entry.name);
    }
    assert_eq!(exposed, described);
}

#[test]
fn series_with_known_labels_exist_from_the_start() {
    let metrics = Metrics::default();
    let exposed = exposed(&metrics.render(ExpositionFormat::Prometheus).unwrap());
    let all = metrics.catalog.entries.iter().map(|entry| entry.name);
    let missing: BTreeSet<&str> = all.filter(|name| !exposed.contains_key(*name)).collect();
    let expected = INITIALLY_ABSENT
        .into_iter()
        .chain(["shedlock_acquisition_failures"]);
    assert_eq!(missing, expected.collect());
}

#[test]
fn promtool_accepts_the_metrics() {
    for metrics in [Metrics::default(), populated()] {
        leasehold_testkit::check_metrics(&metrics.render(ExpositionFormat::Prometheus).unwrap());
    }
}

#[test]
fn store_gauges_disappear_when_the_store_does_not_answer() {
    let metrics = Metrics::default();
    metrics.set_store_up(true);
    metrics.set_store_gauges(&snapshot());
    let text = metrics.render(ExpositionFormat::Prometheus).unwrap();
    for line in [
        "leasehold_store_up 1.0",
        "leasehold_workspaces 12.0",
        r#"leasehold_requests{status="completed"} 30.0"#,
        r#"leasehold_requests_oldest_seconds{status="pending"} 60.0"#,
        r#"leasehold_requests_oldest_seconds{status="claimed"} 0.0"#,
        r#"leasehold_requests_oldest_seconds{status="dispatched"} 0.0"#,
        r#"leasehold_workspace_requests{workspace="acme",status="pending"} 3.0"#,
        r#"leasehold_workspace_requests{workspace="other",status="pending"} 4.0"#,
        r#"leasehold_workspace_slots{workspace="acme"} 5.0"#,
        r#"leasehold_workspace_slots_in_use{workspace="acme"} 2.0"#,
        r#"leasehold_queue_jobs{queue="mails",status="waiting"} 9.0"#,
        r#"leasehold_queue_limit{queue="mails"} 8.0"#,
    ] {
        assert!(
            text.lines().any(|exposed| exposed == line),
            "{line} is not in\n{text}"
        );
    }
    metrics.set_store_up(false);
    let text = metrics.render(ExpositionFormat::Prometheus).unwrap();
    assert!(
        text.lines()
            .any(|exposed| exposed == "leasehold_store_up 0.0")
    );
    for gone in [
        "leasehold_requests{",
        "leasehold_workspaces ",
        "leasehold_queue_jobs{",
        "leasehold_workspace_slots",
    ] {
        assert!(!text.contains(gone), "{gone} is still in\n{text}");
    }
}

#[test]
fn lost_lock_is_counted_once_and_not_reported_as_held() {
    let metrics = Metrics::default();
    let token = |token| LockToken {
        name: "pruneFinished".to_owned(),
        owner: "a".to_owned(),
        token,
    };
    let assert_gauges = |held: u8, lost: u8| {
        let text = metrics.render(ExpositionFormat::Prometheus).unwrap();
        let expected = [
            format!("leasehold_lock_held{{lock=\"pruneFinished\"}} {held}.0"),
            format!("leasehold_lock_losses_total{{lock=\"pruneFinished\"}} {lost}"),
        ];
        for line in expected {
            assert!(
                text.lines().any(|exposed| exposed == line),
                "{line} is not in\n{text}"
            );
        }
    };
    let minute = Duration::from_secs(60);
    metrics.set_lock_held(&token(1), minute);
    assert_gauges(1, 0);
    metrics.lock_lost(&token(1));
    metrics.lock_lost(&token(1));
    assert_gauges(0, 1);
    metrics.set_lock_held(&token(2), minute);
    metrics.lock_lost(&token(1));
    assert_gauges(1, 1);
    metrics.lock_released(&token(2));
    assert_gauges(0, 1);
    metrics.set_lock_held(&token(3), Duration::ZERO);
    assert_gauges(0, 1);
}
