//! Examining an installation: asks the store and the engine for what can be known of them, once, and has it judged. Repairs nothing.

mod database;
mod judge;

use judge::{problem, well};
use leasehold_core::Timestamp;
use leasehold_core::doctor::Finding;
use leasehold_engine::Engine;
use leasehold_store::capacity::Drift;
use leasehold_store::{Page, Result, Store};
use std::time::{Duration, Instant};

/// Workspaces looked at in one call.
const PAGE: u32 = 500;
/// How long the engine may take to say how it is.
const ENGINE_PATIENCE: Duration = Duration::from_secs(10);

/// Examines a store, and an engine if there is one to be asked. `machine` is this machine's clock. What cannot be asked is a finding too.
pub async fn examine(
    store: &dyn Store,
    engine: Option<&dyn Engine>,
    machine: fn() -> Timestamp,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let schema = store.schema_status().await;
    let fits = schema
        .as_ref()
        .is_ok_and(|status| judge::schema_fits(status));
    match schema {
        Ok(status) => findings.push(judge::schema(&status)),
        Err(error) => {
            let todo = "start the database, or see that store.url names it";
            findings.push(problem("store", format!("does not answer: {error}"), todo));
        }
    }
    if fits {
        findings.extend(of_store(store, machine).await);
    }
    if let Some(engine) = engine {
        findings.push(of_engine(engine).await);
    }
    findings
}

/// What the database says, and what is kept in it.
async fn of_store(store: &dyn Store, machine: fn() -> Timestamp) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |check: &'static str, found: Result<Vec<Finding>>| {
        findings.extend(found.unwrap_or_else(|error| {
            let todo = "try again; if it stays so, look into the log of the server";
            vec![problem(check, format!("cannot be told: {error}"), todo)]
        }));
    };
    let (asked, begun) = (Instant::now(), machine());
    let now = store.now().await.map(|now| {
        // The answer was on its way for a while.
        vec![judge::clock(now, begun + asked.elapsed() / 2)]
    });
    add("clock", now);
    let database = store.diagnose().await;
    add("database", database.map(|facts| database::judge(&facts)));
    add("instances", of_instances(store).await);
    add(
        "drift",
        drift(store).await.map(|found| vec![judge::drift(&found)]),
    );
    add("requests", of_requests(store).await);
    findings
}

async fn of_instances(store: &dyn Store) -> Result<Vec<Finding>> {
    let (now, instances, locks) = (
        store.now().await?,
        store.instance_list().await?,
        store.lock_list().await?,
    );
    Ok(vec![
        judge::instances(&instances, now),
        judge::locks(&locks, &instances, now),
    ])
}

async fn of_requests(store: &dyn Store) -> Result<Vec<Finding>> {
    let overview = store.workspace_overview(1).await?;
    let oldest = store.request_oldest().await?;
    Ok(vec![
        judge::dead_letters(overview.requests.failed),
        judge::waiting(overview.requests.pending, &oldest),
    ])
}

/// Every drift there is. Nothing is mended.
async fn drift(store: &dyn Store) -> Result<Vec<Drift>> {
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let audit = store.capacity_audit(Page { after, limit: PAGE }).await?;
        found.extend(audit.drifts);
        after = audit.last;
        if after.is_none() {
            return Ok(found);
        }
    }
}

async fn of_engine(engine: &dyn Engine) -> Finding {
    let name = engine.name();
    match tokio::time::timeout(ENGINE_PATIENCE, engine.health()).await {
        Ok(Ok(())) => well("engine", format!("{name} would serve a start now")),
        Ok(Err(error)) => problem(
            "engine",
            format!("{name} does not serve: {error}"),
            "start it, or see that temporal.address and temporal.namespace name it; requests wait meanwhile, and none is lost",
        ),
        Err(_elapsed) => problem(
            "engine",
            format!("{name} did not answer in {} s", ENGINE_PATIENCE.as_secs()),
            "see whether it is overloaded, and whether temporal.address names it",
        ),
    }
}
