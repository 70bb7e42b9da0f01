//! Number of workspaces (B8): the cost of admission with few and with very many workspaces, and with many blocked requests.

use super::Options;
use crate::backend::{BenchBackend, Fill, StatementCost};
use crate::claim::{OWNER, claim, completed};
use crate::printer::Printer;
use crate::report::{BenchResult, median};
use anyhow::{Result, ensure};
use leasehold_store::Store;
use leasehold_store::request::{ClaimRef, ClaimedRequest};
use std::time::{Duration, Instant};

/// Maximum number of requests per claim.
const BATCH: u32 = 100;
/// Requests admitted while timing, and while counting costs.
const TIMED: u32 = 5_000;
const COUNTED: u32 = 1_000;
/// Number of full workspaces with blocked requests.
const FULL: u32 = 10_000;
/// Number of other workspaces in the blocked case.
const BESIDE: u32 = 1_000;

pub(super) async fn run(
    backend: &mut dyn BenchBackend,
    printer: &mut Printer,
    options: &Options,
) -> Result<()> {
    printer.heading(&format!(
        "{}: cost of an admission by number of workspaces (mixed plans; each request dispatched and finished)",
        backend.name()
    ));
    let mut base = None;
    let cases = options
        .workspace_counts
        .iter()
        .map(|workspaces| (*workspaces, 0));
    let blocked = (options.blocked > 0).then_some((BESIDE, options.blocked));
    for (workspaces, blocked) in cases.chain(blocked) {
        printer.progress(&format!(
            "{workspaces} workspaces, {blocked} blocked, on {}",
            backend.name()
        ));
        let mut found = Vec::new();
        for _ in 0..options.rounds {
            found.push(measure(backend, workspaces, blocked).await?);
        }
        let middle = |of: fn(&ScaleResult) -> f64| median(found.iter().map(of).collect());
        let rate = middle(|found| found.rate);
        let cost = middle(|found| found.cost);
        let (base_rate, base_cost) = *base.get_or_insert((rate, cost));
        let outcome = BenchResult::default()
            .field("store", backend.name())
            .field("case", "scale")
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
        printer.row(&label, &outcome);
        if let Some(found) = found.last()
            && options.profile
        {
            printer.statements(&found.statements, TIMED);
        }
    }
    Ok(())
}

struct ScaleResult {
    /// Admissions per second of claiming.
    rate: f64,
    /// Requests claimed, dispatched and finished per second.
    cycles: f64,
    /// Buffers or pages per claimed request.
    cost: f64,
    statements: Vec<StatementCost>,
}

async fn measure(
    backend: &mut dyn BenchBackend,
    workspaces: u32,
    blocked: u32,
) -> Result<ScaleResult> {
    let ready = (TIMED + COUNTED + 4 * BATCH).max(workspaces);
    let mut fill = Fill::plans(workspaces);
    if blocked > 0 {
        fill = fill
            .with_workspaces(FULL, 0)
            .with_requests(blocked, workspaces, FULL);
    }
    backend
        .fill(&fill.with_requests(ready, 0, workspaces))
        .await?;
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
            ensure!(!claimed.is_empty(), "no request could be admitted");
            touched += after.touched.unwrap_or_default();
            admitted += u32::try_from(claimed.len())?;
            dispatch_and_finish(&*store, claimed).await?;
        }
        touched / f64::from(admitted)
    };
    let store = backend.store(false).await?;
    admit(&*store, BATCH).await?;
    let meter = backend.meter().await?;
    let begun = Instant::now();
    let claiming = admit(&*store, TIMED).await?;
    let elapsed = begun.elapsed();
    Ok(ScaleResult {
        rate: f64::from(TIMED) / claiming.as_secs_f64(),
        cycles: f64::from(TIMED) / elapsed.as_secs_f64(),
        cost,
        statements: meter.statements().await?,
    })
}

/// Admits, dispatches and finishes `most` requests and returns the time spent in claims.
async fn admit(store: &dyn Store, most: u32) -> Result<Duration> {
    let mut claiming = Duration::ZERO;
    let mut admitted = 0;
    while admitted < most {
        let begun = Instant::now();
        let claimed = claim(store, BATCH.min(most - admitted)).await?.requests;
        claiming += begun.elapsed();
        ensure!(!claimed.is_empty(), "no request could be admitted");
        admitted += u32::try_from(claimed.len())?;
        dispatch_and_finish(store, claimed).await?;
    }
    Ok(claiming)
}

async fn dispatch_and_finish(store: &dyn Store, claimed: Vec<ClaimedRequest>) -> Result<()> {
    let claims: Vec<ClaimRef> = claimed.iter().map(ClaimRef::from).collect();
    store.request_dispatched(OWNER, &claims).await?;
    let ends: Vec<_> = claimed.iter().map(completed).collect();
    store.execution_finish(OWNER, &ends).await?;
    Ok(())
}
