//! Drift: planted by hand in the database, seen and mended or alarmed within one check; and what the engine says otherwise than we do, within one sweep.

use crate::cast::{NEVER, cycle, round};
use crate::dispatch_env::{DispatchEnv, until};
use crate::logs;
use crate::temporal::operator;
use leasehold_core::{ExecutionId, RequestStatus};
use leasehold_engine::{Description, Engine};
use leasehold_runtime::{Auditor, AuditorOptions, LockOptions, Sweeper, SweeperOptions};
use leasehold_service::Service;
use leasehold_store::lock::LockRequest;
use leasehold_telemetry::{Format, Telemetry};
use leasehold_testbed::BackendKind;
use std::time::Duration;
use tracing::Level;
use uuid::Uuid;

const TRIGGERS_OFF: &str = include_str!("../sql/drift_triggers_off.sql");
const GUARD_DROP: &str = include_str!("../sql/drift_guard_drop.sql");
const FULL: &str = include_str!("../sql/drift_full.sql");
const FULL_SQLITE: &str = include_str!("../sql/drift_full_sqlite.sql");
const COMPLETED: &str = include_str!("../sql/drift_completed.sql");
const REQUEST_BACK: &str = include_str!("../sql/drift_request_back.sql");
const EXECUTION_BACK: &str = include_str!("../sql/drift_execution_back.sql");

scenarios! {
    both: a_slot_without_an_execution_is_seen_and_mended_in_one_check,
        an_execution_that_its_request_forgot_is_alarmed_until_the_engine_says_that_it_has_ended,
        what_ended_in_the_engine_while_it_was_dispatched_here_is_mended_by_the_sweep,
        what_the_engine_does_not_know_is_counted_until_it_is_given_up,
        where_nothing_differs_a_check_counts_nothing, only_one_instance_checks;
}

/// Writes one row by hand, with nothing standing guard.
async fn plant(scene: &DispatchEnv, on: BackendKind, sql: &str, id: Uuid) {
    scene.store.request_settle().await.unwrap();
    match on {
        BackendKind::Postgres => {
            let hand = scene.by_hand().await;
            hand.batch_execute(TRIGGERS_OFF).await.unwrap();
            assert_eq!(hand.execute(sql, &[&id]).await.unwrap(), 1);
        }
        BackendKind::Sqlite | BackendKind::SqliteMemory => {
            let hand = rusqlite::Connection::open(scene.file()).unwrap();
            // Gone already if it was dropped before.
            let _ = hand.execute(GUARD_DROP, []);
            assert_eq!(hand.execute(sql, [id.into_bytes()]).unwrap(), 1);
        }
    }
}

fn lasting() -> LockOptions {
    LockOptions {
        at_most_for: NEVER * 24,
        at_least_for: Duration::ZERO,
    }
}

fn auditor(scene: &DispatchEnv, telemetry: &Telemetry) -> Auditor {
    let options = AuditorOptions {
        interval: Duration::ZERO,
        lost_after: Duration::ZERO,
        lock: lasting(),
        telemetry: telemetry.clone(),
        ..AuditorOptions::default()
    };
    let engine = scene.engine.clone();
    Auditor::new(scene.store.clone(), Some(engine), "auditor", options)
}

/// One whole check of few workspaces: a page.
async fn check(auditor: &Auditor) {
    round(auditor).await;
}

fn sweeper(scene: &DispatchEnv, telemetry: &Telemetry, lost_after: Duration) -> Sweeper {
    let options = SweeperOptions {
        interval: Duration::ZERO,
        lost_after,
        lock: lasting(),
        telemetry: telemetry.clone(),
        ..SweeperOptions::default()
    };
    Sweeper::new(
        scene.store.clone(),
        scene.engine.clone(),
        "sweeper",
        options,
    )
}

/// What a scrape shows.
fn scraped(telemetry: &Telemetry, series: &str) -> f64 {
    let text = telemetry.metrics.shown(Format::Prometheus).unwrap();
    let line = text.lines().find(|line| line.starts_with(series));
    let line = line.unwrap_or_else(|| panic!("no {series} in:\n{text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

fn seen(telemetry: &Telemetry, kind: &str) -> f64 {
    scraped(telemetry, &format!("capacity_drift{{kind=\"{kind}\"}}"))
}

fn repaired(telemetry: &Telemetry, kind: &str) -> f64 {
    let name = "leasehold_capacity_drift_repaired_total";
    scraped(telemetry, &format!("{name}{{kind=\"{kind}\"}}"))
}

async fn a_slot_without_an_execution_is_seen_and_mended_in_one_check(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(2).await;
    scene.enqueue_one(&site).await;
    let full = match on {
        BackendKind::Postgres => FULL,
        BackendKind::Sqlite | BackendKind::SqliteMemory => FULL_SQLITE,
    };
    plant(&scene, on, full, site.workspace.0).await;
    let dispatcher = scene.dispatcher();
    assert_eq!(cycle(&dispatcher).await.dispatched, 0);
    let telemetry = Telemetry::default();
    check(&auditor(&scene, &telemetry)).await;
    assert_eq!(repaired(&telemetry, "slot_without_execution"), 1.0);
    assert_eq!(seen(&telemetry, "slot_without_execution"), 0.0);
    let workspace = site.workspace.to_string();
    logs::assert_once(
        Level::WARN,
        &[
            "capacity drift repaired",
            "slot_without_execution",
            &workspace,
        ],
    );
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
}

async fn an_execution_that_its_request_forgot_is_alarmed_until_the_engine_says_that_it_has_ended(
    on: BackendKind,
) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    cycle(&scene.dispatcher()).await;
    let execution = scene.execution(&site, id).await;
    plant(&scene, on, COMPLETED, id.0).await;
    let telemetry = Telemetry::default();
    let auditor = auditor(&scene, &telemetry);
    for _ in 0..3 {
        check(&auditor).await;
    }
    assert_eq!(seen(&telemetry, "slot_without_execution"), 1.0);
    assert_eq!(scene.in_use(&site).await, 1);
    let named = execution.to_string();
    logs::assert_once(Level::ERROR, &["capacity drift", &named]);
    scene.engine.terminate(execution, "stop").await.unwrap();
    check(&auditor).await;
    assert_eq!(seen(&telemetry, "slot_without_execution"), 0.0);
    assert_eq!(repaired(&telemetry, "slot_without_execution"), 1.0);
    assert_eq!(scene.in_use(&site).await, 0);
    assert!(
        logs::count(
            Level::INFO,
            &["capacity drift is over", "slot_without_execution"]
        ) >= 1
    );
    assert_eq!(scene.status(&site, id).await, RequestStatus::Completed);
}

async fn what_ended_in_the_engine_while_it_was_dispatched_here_is_mended_by_the_sweep(
    on: BackendKind,
) {
    let scene = DispatchEnv::still(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    cycle(&scene.dispatcher()).await;
    let execution = scene.execution(&site, id).await;
    scene.engine.terminate(execution, "stop").await.unwrap();
    let telemetry = Telemetry::default();
    let sweeper = sweeper(&scene, &telemetry, NEVER);
    round(&sweeper).await;
    assert_eq!(scene.status(&site, id).await, RequestStatus::Failed);
    assert_eq!(
        repaired(&telemetry, "ended_in_engine"),
        0.0,
        "it was in time"
    );
    // The follower has done with it, and does not look again.
    plant(&scene, on, REQUEST_BACK, id.0).await;
    plant(&scene, on, EXECUTION_BACK, execution.0).await;
    assert_eq!(scene.in_use(&site).await, 1);
    scene.advance(Duration::from_secs(60));
    until("the sweep has seen it", async || {
        round(&sweeper).await;
        scene.status(&site, id).await == RequestStatus::Failed
    })
    .await;
    assert_eq!(scene.in_use(&site).await, 0);
    assert_eq!(repaired(&telemetry, "ended_in_engine"), 1.0);
    let named = execution.to_string();
    logs::assert_once(
        Level::WARN,
        &["capacity drift repaired", "ended_in_engine", &named],
    );
    let auditor = auditor(&scene, &telemetry);
    check(&auditor).await;
    check(&auditor).await;
    for kind in ["counts", "execution_without_slot", "slot_without_execution"] {
        assert_eq!(seen(&telemetry, kind), 0.0, "{kind}");
    }
    assert_eq!(
        scene
            .store
            .request_counts(site.workspace)
            .await
            .unwrap()
            .failed,
        1
    );
}

async fn forget(scene: &DispatchEnv, execution: ExecutionId) {
    operator(&["delete", "--yes"], execution);
    until("Temporal has forgotten it", async || {
        scene.engine.describe(execution).await == Ok(Description::NotFound)
    })
    .await;
}

async fn what_the_engine_does_not_know_is_counted_until_it_is_given_up(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    cycle(&scene.dispatcher()).await;
    forget(&scene, scene.execution(&site, id).await).await;
    let telemetry = Telemetry::default();
    let patient = sweeper(&scene, &telemetry, NEVER);
    round(&patient).await;
    assert_eq!(seen(&telemetry, "unknown_to_engine"), 0.0);
    until("a second pass has missed it", async || {
        round(&patient).await;
        seen(&telemetry, "unknown_to_engine") == 1.0
    })
    .await;
    logs::assert_once(
        Level::WARN,
        &["the engine does not know what is DISPATCHED here"],
    );
    let hasty = sweeper(&scene, &telemetry, Duration::ZERO);
    hasty_lock(&scene).await;
    until("it is given up", async || {
        round(&hasty).await;
        scene.status(&site, id).await == RequestStatus::Failed
    })
    .await;
    assert_eq!(seen(&telemetry, "unknown_to_engine"), 0.0);
}

/// The same owner may sweep with other options: the lock is given back first.
async fn hasty_lock(scene: &DispatchEnv) {
    let locks = scene.store.lock_list().await.unwrap();
    let held = locks.iter().find(|lock| lock.name == "sweepOpenExecutions");
    let held = held.unwrap();
    let token = leasehold_store::lock::LockToken {
        name: held.name.clone(),
        owner: held.owner.clone(),
        token: held.token,
    };
    let released = scene.store.lock_release(&token, Duration::ZERO).await;
    assert!(released.unwrap());
}

async fn where_nothing_differs_a_check_counts_nothing(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(1).await;
    scene.enqueue(&site, 3).await;
    cycle(&scene.dispatcher()).await;
    let telemetry = Telemetry::default();
    let checked = "leasehold_capacity_drift_checked_timestamp_seconds";
    assert_eq!(scraped(&telemetry, checked), 0.0);
    check(&auditor(&scene, &telemetry)).await;
    assert!(scraped(&telemetry, checked) > 1e9);
    let text = telemetry.metrics.shown(Format::Prometheus).unwrap();
    let drift: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("capacity_drift{"))
        .collect();
    assert_eq!(drift.len(), 7, "{drift:?}");
    assert!(
        drift
            .iter()
            .all(|line| line.ends_with(" 0") || line.ends_with(" 0.0")),
        "{drift:?}"
    );
}

async fn only_one_instance_checks(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let lock = LockRequest {
        name: "auditCapacity".to_owned(),
        owner: "somebody".to_owned(),
        at_most_for: NEVER,
    };
    scene.store.lock_acquire(&lock).await.unwrap();
    let auditor = auditor(&scene, &Telemetry::default());
    auditor.run_once().await.unwrap();
    assert_eq!(scene.faults.calls("capacity_audit"), 0);
}
