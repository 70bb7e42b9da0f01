//! The checks of `doctor`: reads facts from the store and the engine once and evaluates them. Repairs nothing.

mod database;
mod evaluate;

use evaluate::{RECORDED_ENGINE, passed, problem};
use leasehold_core::Timestamp;
use leasehold_core::doctor::Finding;
use leasehold_engine::Engine;
use leasehold_store::drift::Drift;
use leasehold_store::{Page, Result, Store};
use std::time::{Duration, Instant};

/// Workspaces checked in one call.
const PAGE: u32 = 500;
/// Timeout of the engine's health check.
const ENGINE_TIMEOUT: Duration = Duration::from_secs(10);

/// Checks a store, and an engine if there is one. `machine` is this machine's clock. A check that fails is a finding too.
pub async fn examine(
    store: &dyn Store,
    engine: Option<&dyn Engine>,
    machine: fn() -> Timestamp,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let schema = store.schema_status().await;
    let is_current = schema
        .as_ref()
        .is_ok_and(|status| evaluate::is_schema_current(status));
    match schema {
        Ok(status) => findings.push(evaluate::schema(&status)),
        Err(error) => {
            let todo = "start the database, or check store.url";
            findings.push(problem("store", format!("does not answer: {error}"), todo));
        }
    }
    if is_current {
        findings.extend(check_store(store, machine).await);
    }
    if let Some(engine) = engine {
        findings.push(check_engine(engine).await);
    }
    if is_current {
        findings.push(check_recorded_engine(store, engine).await);
    }
    findings
}

/// Checks the database and its contents.
async fn check_store(store: &dyn Store, machine: fn() -> Timestamp) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |check: &'static str, found: Result<Vec<Finding>>| {
        findings.extend(found.unwrap_or_else(|error| {
            let todo = "run doctor again; if the error persists, see the server's log";
            vec![problem(check, format!("check failed: {error}"), todo)]
        }));
    };
    let (started, begun) = (Instant::now(), machine());
    let now = store.now().await.map(|now| {
        // The store read its clock at some moment of the call: a slow call is not a skew.
        let ended = begun + started.elapsed();
        vec![evaluate::clock(now, now.clamp(begun, ended))]
    });
    add("clock", now);
    let database = store.diagnose().await;
    add("database", database.map(|facts| database::evaluate(&facts)));
    add("instances", check_instances(store).await);
    add(
        "drift",
        drift(store)
            .await
            .map(|found| vec![evaluate::drift(&found)]),
    );
    add("requests", check_requests(store).await);
    findings
}

async fn check_instances(store: &dyn Store) -> Result<Vec<Finding>> {
    let (now, instances, locks) = (
        store.now().await?,
        store.instance_list().await?,
        store.lock_list().await?,
    );
    Ok(vec![
        evaluate::instances(&instances, now),
        evaluate::locks(&locks, &instances, now),
    ])
}

async fn check_requests(store: &dyn Store) -> Result<Vec<Finding>> {
    let overview = store.workspace_overview(1).await?;
    let oldest = store.request_oldest().await?;
    Ok(vec![
        evaluate::dead_letters(overview.requests.failed),
        evaluate::waiting(overview.requests.pending, &oldest),
    ])
}

/// Returns every drift. Repairs nothing.
async fn drift(store: &dyn Store) -> Result<Vec<Drift>> {
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let report = store.drift_check(Page { after, limit: PAGE }).await?;
        found.extend(report.drifts);
        after = report.last;
        if after.is_none() {
            return Ok(found);
        }
    }
}

async fn check_engine(engine: &dyn Engine) -> Finding {
    let name = engine.name();
    match tokio::time::timeout(ENGINE_TIMEOUT, engine.health()).await {
        Ok(Ok(())) => passed("engine", format!("{name} accepts starts")),
        Ok(Err(error)) => problem(
            "engine",
            format!("{name} is unavailable: {error}"),
            "start it, or check temporal.address and temporal.namespace; until then requests wait, and none is lost",
        ),
        Err(_elapsed) => problem(
            "engine",
            format!(
                "{name} did not answer within {} s",
                ENGINE_TIMEOUT.as_secs()
            ),
            "check whether it is overloaded, and check temporal.address",
        ),
    }
}

/// Compares the engine with the recorded one.
async fn check_recorded_engine(store: &dyn Store, engine: Option<&dyn Engine>) -> Finding {
    let recorded = match store.engine_recorded().await {
        Ok(recorded) => recorded.map(|recorded| recorded.identity),
        Err(error) => {
            let todo = "run doctor again; if the error persists, see the server's log";
            return problem(RECORDED_ENGINE, format!("check failed: {error}"), todo);
        }
    };
    let present = match engine {
        Some(engine) => tokio::time::timeout(ENGINE_TIMEOUT, engine.identity()).await,
        None => return evaluate::recorded_engine(recorded.as_ref(), None),
    };
    // The check of the engine reports one that does not answer.
    let present = present.ok().and_then(std::result::Result::ok);
    evaluate::recorded_engine(recorded.as_ref(), present.as_ref())
}
