//! How many workspaces there may be (B8): what admission costs with few and with very many, and with much that is blocked.

use super::Options;
use crate::backend::{BenchBackend, Fill, StatementCost};
use crate::claim::{OWNER, claim, completed};
use crate::report::{Outcome, median};
use crate::sheet::Sheet;
use anyhow::{Result, ensure};
use leasehold_store::Store;
use leasehold_store::request::{ClaimRef, ClaimedRequest};
use std::time::{Duration, Instant};

/// Requests one claim admits at most.
const BATCH: u32 = 100;
/// Requests that are admitted while the clock runs, and while costs are counted.
const TIMED: u32 = 5_000;
const COUNTED: u32 = 1_000;
/// Full workspaces that hold what is blocked.
const FULL: u32 = 10_000;
/// Workspaces beside which much is blocked.
const BESIDE: u32 = 1_000;

pub(super) async fn run(
    backend: &mut dyn BenchBackend,
    sheet: &mut Sheet,
    options: &Options,
) -> Result<()> {
    sheet.heading(&format!(
        "{}: what an admission costs, workspaces of mixed plans, each request dispatched and finished",
        backend.name()
    ));
    let mut base = None;
    let cases = options.crowds.iter().map(|workspaces| (*workspaces, 0));
    let blocked = (options.blocked > 0).then_some((BESIDE, options.blocked));
    for (workspaces, blocked) in cases.chain(blocked) {
        sheet.progress(&format!(
            "{workspaces} workspaces, {blocked} blocked, on {}",
            backend.name()
        ));
        let mut found = Vec::new();
        for _ in 0..options.rounds {
            found.push(measure(backend, workspaces, blocked).await?);
        }
        let middle = |of: fn(&Found) -> f64| median(found.iter().map(of).collect());
        let rate = middle(|found| found.rate);
        let cost = middle(|found| found.cost);
        let (base_rate, base_cost) = *base.get_or_insert((rate, cost));
        let outcome = Outcome::default()
            .field("store", backend.name())
            .field("case", "crowd")
            .field("workspaces", workspaces)
            .field("blocked", blocked)
            .metric("rate", rate, "requests/s")
            .metric("cycles", middle(|found| found.cycles), "requests/s")
            .metric("buffers", cost, &format!("{}/request", backend.unit()))
            .metric("rate_ratio", base_rate / rate, "")
            .metric("buffers_ratio", cost / base_cost, "");
        let label = match blocked {
            0 => format!("{workspaces} workspaces"),
            blocked => format!("{workspaces}, {blocked} blocked"),
        };
        sheet.row(&label, &outcome);
        if let Some(found) = found.last()
            && options.profile
        {
            sheet.statements(&found.statements, TIMED);
        }
    }
    Ok(())
}

struct Found {
    /// Admissions in a second of claiming.
    rate: f64,
    /// Requests in a second, claimed, dispatched and finished.
    cycles: f64,
    /// What claiming touched for each.
    cost: f64,
    statements: Vec<StatementCost>,
}

async fn measure(backend: &mut dyn BenchBackend, workspaces: u32, blocked: u32) -> Result<Found> {
    let ready = (TIMED + COUNTED + 4 * BATCH).max(workspaces);
    let mut fill = Fill::plans(workspaces);
    if blocked > 0 {
        fill = fill.and(FULL, 0).waiting(blocked, workspaces, FULL);
    }
    backend.fill(&fill.waiting(ready, 0, workspaces)).await?;
    let cost = {
        let store = backend.store(true).await?;
        admit(&*store, BATCH).await?;
        let meter = backend.meter().await?;
        let mut touched = 0.0;
        let mut admitted = 0;
        while admitted < COUNTED {
            let before = meter.read().await?;
            let claimed = claim(&*store, BATCH).await?.requests;
            let after = meter.read().await?.since(before);
            ensure!(!claimed.is_empty(), "nothing could be admitted");
            touched += after.touched.unwrap_or_default();
            admitted += u32::try_from(claimed.len())?;
            done(&*store, claimed).await?;
        }
        touched / f64::from(admitted)
    };
    let store = backend.store(false).await?;
    admit(&*store, BATCH).await?;
    let meter = backend.meter().await?;
    let begun = Instant::now();
    let claiming = admit(&*store, TIMED).await?;
    let elapsed = begun.elapsed();
    Ok(Found {
        rate: f64::from(TIMED) / claiming.as_secs_f64(),
        cycles: f64::from(TIMED) / elapsed.as_secs_f64(),
        cost,
        statements: meter.statements().await?,
    })
}

/// Admits so many, dispatches and finishes them, and says how long claiming took.
async fn admit(store: &dyn Store, most: u32) -> Result<Duration> {
    let mut claiming = Duration::ZERO;
    let mut admitted = 0;
    while admitted < most {
        let begun = Instant::now();
        let claimed = claim(store, BATCH.min(most - admitted)).await?.requests;
        claiming += begun.elapsed();
        ensure!(!claimed.is_empty(), "nothing could be admitted");
        admitted += u32::try_from(claimed.len())?;
        done(store, claimed).await?;
    }
    Ok(claiming)
}

async fn done(store: &dyn Store, claimed: Vec<ClaimedRequest>) -> Result<()> {
    let claims: Vec<ClaimRef> = claimed.iter().map(ClaimRef::from).collect();
    store.request_dispatched(OWNER, &claims).await?;
    let ends: Vec<_> = claimed.iter().map(completed).collect();
    store.execution_finish(OWNER, &ends).await?;
    Ok(())
}
