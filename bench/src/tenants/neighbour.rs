//! A noisy neighbour (B6): whether a workspace with a large backlog slows down a quiet one.

use super::Options;
use crate::backend::{BenchBackend, BenchWorkspace, Fill, NO_LIMIT};
use crate::engine::Finisher;
use crate::printer::Printer;
use crate::report::{BenchResult, median};
use anyhow::{Context, Result, bail};
use leasehold_runtime::{Runtime, RuntimeOptions};
use leasehold_store::request::{Enqueue, Enqueued, NewRequest};
use leasehold_store::{Store, fresh_id};
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Duration of an execution in the noisy workspace.
const WORK: Duration = Duration::from_millis(50);
/// Requests of the quiet workspace in one burst.
const BURST: u32 = 100;
/// Bursts per run.
const BURSTS: u32 = 5;
/// Finished executions of the noisy workspace before the first burst.
const WARM_UP_FINISHES: u64 = 10;
/// Limits of the quiet workspace: a plan's, and none.
const LIMITS: [u32; 2] = [20, NO_LIMIT];

pub(super) async fn run(
    backend: &mut dyn BenchBackend,
    printer: &mut Printer,
    options: &Options,
) -> Result<()> {
    printer.heading(&format!(
        "{}: time to finish {BURST} requests of a quiet workspace, alone and beside a noisy one",
        backend.name()
    ));
    for limit in LIMITS {
        let (mut alone, mut beside) = (Vec::new(), Vec::new());
        let mut ratios = Vec::new();
        for _ in 0..options.rounds {
            printer.progress(&format!("quiet workspace alone on {}", backend.name()));
            let quiet = bursts(backend, 0, limit).await?;
            printer.progress(&format!(
                "quiet workspace beside a noisy one on {}",
                backend.name()
            ));
            let noisy = bursts(backend, options.noise, limit).await?;
            ratios.push(noisy / quiet);
            alone.push(quiet);
            beside.push(noisy);
        }
        let outcome = BenchResult::default()
            .field("store", backend.name())
            .field("case", "neighbour")
            .field("limit", limit)
            .field("noise", options.noise)
            .metric("ratio", median(beside.clone()) / median(alone.clone()), "")
            .metric(
                "ratio_least",
                ratios.iter().copied().fold(f64::INFINITY, f64::min),
                "",
            )
            .metric("ratio_most", ratios.iter().copied().fold(0.0, f64::max), "")
            .metric("beside", median(beside) * 1_000.0, "ms")
            .metric("alone", median(alone) * 1_000.0, "ms");
        let label = match limit {
            NO_LIMIT => "without limit".to_owned(),
            limit => format!("limit {limit}"),
        };
        printer.row(&label, &outcome);
    }
    Ok(())
}

/// Returns the median seconds to finish a burst.
async fn bursts(backend: &mut dyn BenchBackend, noise: u32, limit: u32) -> Result<f64> {
    let mut fill = Fill::idle(1, 1).with_workspaces(1, limit);
    if noise > 0 {
        fill = fill.with_requests(noise, 0, 1);
    }
    backend.fill(&fill).await?;
    let store = backend.store(false).await?;
    let tenants = backend.workspaces().await?;
    let (noisy, quiet) = tenants
        .first()
        .zip(tenants.get(1))
        .context("the database has fewer than two workspaces")?;
    let work = HashMap::from([(noisy.workspace, WORK)]);
    let (engine, finisher) = Finisher::start(store.clone(), work);
    let runtime = Runtime::start(
        store.clone(),
        Some(Arc::new(engine)),
        RuntimeOptions::new("bench"),
    );
    // Opens connections and fills the version cache.
    burst(&store, &finisher, quiet).await?;
    if noise > 0 {
        finisher
            .wait_until(|all| all.finished_of(noisy.workspace) >= WARM_UP_FINISHES)
            .await;
    }
    let mut seconds = Vec::new();
    for _ in 0..BURSTS {
        seconds.push(burst(&store, &finisher, quiet).await?);
    }
    runtime.stop().await;
    Ok(median(seconds))
}

async fn burst(
    store: &Arc<dyn Store>,
    finisher: &Finisher,
    tenant: &BenchWorkspace,
) -> Result<f64> {
    let before = finisher.finished_of(tenant.workspace);
    let params = json!({"order": 12345, "customer": "abcdefgh", "lines": [1, 2, 3]});
    let enqueue = Enqueue {
        workspace: tenant.workspace,
        requests: (0..BURST)
            .map(|_| NewRequest::new(fresh_id(), tenant.definition, params.clone()))
            .collect(),
        by: "bench".to_owned(),
    };
    let begun = Instant::now();
    match store.request_enqueue(&enqueue).await? {
        Enqueued::All(_) => {}
        rejected => bail!("the store rejected the burst: {rejected:?}"),
    }
    finisher
        .wait_until(|all| all.finished_of(tenant.workspace) >= before + u64::from(BURST))
        .await;
    Ok(begun.elapsed().as_secs_f64())
}
