//! Drift: planted in the database with SQL, and repaired or reported within one check; and differences from the engine, within one full sweep.

use crate::dispatch_env::{DispatchEnv, until};
use crate::fixtures::{NEVER, cycle, round};
use crate::logs;
use crate::temporal::operator;
use leasehold_core::{ExecutionId, RequestStatus};
use leasehold_engine::{Description, Engine};
use leasehold_runtime::{
    DriftChecker, DriftCheckerOptions, FullSweep, FullSweepOptions, LockOptions,
};
use leasehold_service::Service;
use leasehold_store::lock::LockRequest;
use leasehold_telemetry::{ExpositionFormat, Telemetry};
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
    both: slot_without_execution_is_repaired_in_one_check,
        execution_without_request_is_reported_until_the_engine_has_ended_it,
        execution_that_ended_in_the_engine_is_finished_by_the_full_sweep,
        execution_unknown_to_the_engine_is_counted_until_it_fails_as_lost,
        check_without_drift_counts_nothing, only_one_instance_checks;
}

/// Updates one row with the database's checks disabled.
async fn plant(env: &DispatchEnv, on: BackendKind, sql: &str, id: Uuid) {
    env.store.request_promote_due().await.unwrap();
    match on {
        BackendKind::Postgres => {
            let client = env.sql_client().await;
            client.batch_execute(TRIGGERS_OFF).await.unwrap();
            assert_eq!(client.execute(sql, &[&id]).await.unwrap(), 1);
        }
        BackendKind::Sqlite | BackendKind::SqliteMemory => {
            let client = rusqlite::Connection::open(env.file()).unwrap();
            // Fails if an earlier call has dropped the trigger.
            let _ = client.execute(GUARD_DROP, []);
            assert_eq!(client.execute(sql, [id.into_bytes()]).unwrap(), 1);
        }
    }
}

fn lasting() -> LockOptions {
    LockOptions {
        at_most_for: NEVER * 24,
        at_least_for: Duration::ZERO,
    }
}

fn checker(env: &DispatchEnv, telemetry: &Telemetry) -> DriftChecker {
    let options = DriftCheckerOptions {
        interval: Duration::ZERO,
        lost_after: Duration::ZERO,
        lock: lasting(),
        telemetry: telemetry.clone(),
        ..DriftCheckerOptions::default()
    };
    let engine = env.engine.clone();
    DriftChecker::new(env.store.clone(), Some(engine), "checker", options)
}

/// Runs one complete check: one page of workspaces.
async fn check(checker: &DriftChecker) {
    round(checker).await;
}

fn full_sweep(env: &DispatchEnv, telemetry: &Telemetry, lost_after: Duration) -> FullSweep {
    let options = FullSweepOptions {
        interval: Duration::ZERO,
        lost_after,
        lock: lasting(),
        telemetry: telemetry.clone(),
        ..FullSweepOptions::default()
    };
    FullSweep::new(env.store.clone(), env.engine.clone(), "full_sweep", options)
}

/// Returns the value of a series in a scrape.
fn scraped(telemetry: &Telemetry, series: &str) -> f64 {
    let text = telemetry
        .metrics
        .render(ExpositionFormat::Prometheus)
        .unwrap();
    let line = text.lines().find(|line| line.starts_with(series));
    let line = line.unwrap_or_else(|| panic!("no {series} in:\n{text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

fn drift_gauge(telemetry: &Telemetry, kind: &str) -> f64 {
    scraped(telemetry, &format!("capacity_drift{{kind=\"{kind}\"}}"))
}

fn repaired(telemetry: &Telemetry, kind: &str) -> f64 {
    let name = "leasehold_capacity_drift_repaired_total";
    scraped(telemetry, &format!("{name}{{kind=\"{kind}\"}}"))
}

async fn slot_without_execution_is_repaired_in_one_check(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(2).await;
    env.enqueue_one(&workspace).await;
    let full = match on {
        BackendKind::Postgres => FULL,
        BackendKind::Sqlite | BackendKind::SqliteMemory => FULL_SQLITE,
    };
    plant(&env, on, full, workspace.workspace.0).await;
    let dispatcher = env.dispatcher();
    assert_eq!(cycle(&dispatcher).await.dispatched, 0);
    let telemetry = Telemetry::default();
    check(&checker(&env, &telemetry)).await;
    assert_eq!(repaired(&telemetry, "slot_without_execution"), 1.0);
    assert_eq!(drift_gauge(&telemetry, "slot_without_execution"), 0.0);
    let id = workspace.workspace.to_string();
    logs::assert_once(
        Level::WARN,
        &["capacity drift repaired", "slot_without_execution", &id],
    );
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
}

async fn execution_without_request_is_reported_until_the_engine_has_ended_it(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    cycle(&env.dispatcher()).await;
    let execution = env.execution(&workspace, id).await;
    plant(&env, on, COMPLETED, id.0).await;
    let telemetry = Telemetry::default();
    let checker = checker(&env, &telemetry);
    for _ in 0..3 {
        check(&checker).await;
    }
    assert_eq!(drift_gauge(&telemetry, "slot_without_execution"), 1.0);
    assert_eq!(env.in_use(&workspace).await, 1);
    let named = execution.to_string();
    logs::assert_once(Level::ERROR, &["capacity drift", &named]);
    env.engine.terminate(execution, "stop").await.unwrap();
    check(&checker).await;
    assert_eq!(drift_gauge(&telemetry, "slot_without_execution"), 0.0);
    assert_eq!(repaired(&telemetry, "slot_without_execution"), 1.0);
    assert_eq!(env.in_use(&workspace).await, 0);
    assert!(
        logs::count(
            Level::INFO,
            &["capacity drift resolved", "slot_without_execution"]
        ) >= 1
    );
    assert_eq!(env.status(&workspace, id).await, RequestStatus::Completed);
}

async fn execution_that_ended_in_the_engine_is_finished_by_the_full_sweep(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    cycle(&env.dispatcher()).await;
    let execution = env.execution(&workspace, id).await;
    env.engine.terminate(execution, "stop").await.unwrap();
    let telemetry = Telemetry::default();
    let full_sweep = full_sweep(&env, &telemetry, NEVER);
    round(&full_sweep).await;
    assert_eq!(env.status(&workspace, id).await, RequestStatus::Failed);
    assert_eq!(
        repaired(&telemetry, "ended_in_engine"),
        0.0,
        "the end was noticed in time"
    );
    // The reconciler does not check an execution again that it has finished.
    plant(&env, on, REQUEST_BACK, id.0).await;
    plant(&env, on, EXECUTION_BACK, execution.0).await;
    assert_eq!(env.in_use(&workspace).await, 1);
    env.advance(Duration::from_secs(60));
    until("the full sweep has finished it", async || {
        round(&full_sweep).await;
        env.status(&workspace, id).await == RequestStatus::Failed
    })
    .await;
    assert_eq!(env.in_use(&workspace).await, 0);
    assert_eq!(repaired(&telemetry, "ended_in_engine"), 1.0);
    let named = execution.to_string();
    logs::assert_once(
        Level::WARN,
        &["capacity drift repaired", "ended_in_engine", &named],
    );
    let checker = checker(&env, &telemetry);
    check(&checker).await;
    check(&checker).await;
    for kind in ["counts", "execution_without_slot", "slot_without_execution"] {
        assert_eq!(drift_gauge(&telemetry, kind), 0.0, "{kind}");
    }
    assert_eq!(
        env.store
            .request_counts(workspace.workspace)
            .await
            .unwrap()
            .failed,
        1
    );
}

async fn delete_in_temporal(env: &DispatchEnv, execution: ExecutionId) {
    operator(&["delete", "--yes"], execution);
    until("Temporal has deleted it", async || {
        env.engine.describe(execution).await == Ok(Description::NotFound)
    })
    .await;
}

async fn execution_unknown_to_the_engine_is_counted_until_it_fails_as_lost(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    cycle(&env.dispatcher()).await;
    delete_in_temporal(&env, env.execution(&workspace, id).await).await;
    let telemetry = Telemetry::default();
    let patient = full_sweep(&env, &telemetry, NEVER);
    round(&patient).await;
    assert_eq!(drift_gauge(&telemetry, "unknown_to_engine"), 0.0);
    until("a second pass reports it", async || {
        round(&patient).await;
        drift_gauge(&telemetry, "unknown_to_engine") == 1.0
    })
    .await;
    logs::assert_once(Level::WARN, &["engine does not know dispatched executions"]);
    let hasty = full_sweep(&env, &telemetry, Duration::ZERO);
    release_sweep_lock(&env).await;
    until("it has failed as lost", async || {
        round(&hasty).await;
        env.status(&workspace, id).await == RequestStatus::Failed
    })
    .await;
    assert_eq!(drift_gauge(&telemetry, "unknown_to_engine"), 0.0);
}

/// Releases the lock of the first sweep, so that one with other options can run.
async fn release_sweep_lock(env: &DispatchEnv) {
    let locks = env.store.lock_list().await.unwrap();
    let held = locks.iter().find(|lock| lock.name == "sweepOpenExecutions");
    let held = held.unwrap();
    let token = leasehold_store::lock::LockToken {
        name: held.name.clone(),
        owner: held.owner.clone(),
        token: held.token,
    };
    let released = env.store.lock_release(&token, Duration::ZERO).await;
    assert!(released.unwrap());
}

async fn check_without_drift_counts_nothing(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(1).await;
    env.enqueue(&workspace, 3).await;
    cycle(&env.dispatcher()).await;
    let telemetry = Telemetry::default();
    let checked = "leasehold_capacity_drift_checked_timestamp_seconds";
    assert_eq!(scraped(&telemetry, checked), 0.0);
    check(&checker(&env, &telemetry)).await;
    assert!(scraped(&telemetry, checked) > 1e9);
    let text = telemetry
        .metrics
        .render(ExpositionFormat::Prometheus)
        .unwrap();
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
    let env = DispatchEnv::new(on).await;
    let lock = LockRequest {
        name: "auditCapacity".to_owned(),
        owner: "another instance".to_owned(),
        at_most_for: NEVER,
    };
    env.store.lock_acquire(&lock).await.unwrap();
    let checker = checker(&env, &Telemetry::default());
    checker.run_once().await.unwrap();
    assert_eq!(env.faults.calls("drift_check"), 0);
}
