//! A noisy neighbour (B6): does a workspace with a long line slow down one that has just a little to do?

use super::Options;
use crate::backend::{BenchBackend, BenchWorkspace, Fill, NO_LIMIT};
use crate::engine::Finisher;
use crate::report::{Outcome, median};
use crate::sheet::Sheet;
use anyhow::{Context, Result, bail};
use leasehold_runtime::{Runtime, RuntimeOptions};
use leasehold_store::request::{Enqueue, Enqueued, NewRequest};
use leasehold_store::{Store, fresh_id};
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long an execution of the noisy workspace takes.
const WORK: Duration = Duration::from_millis(50);
/// Requests of the quiet one, each time.
const BURST: u32 = 100;
/// How often it comes, within one run.
const BURSTS: u32 = 5;
/// The noisy one has had so many turns before the quiet one comes: it is in full swing.
const SETTLED_IN: u64 = 10;
/// Concurrency of the quiet workspace: a plan's, and without limit.
const LIMITS: [u32; 2] = [20, NO_LIMIT];

pub(super) async fn run(
    backend: &mut dyn BenchBackend,
    sheet: &mut Sheet,
    options: &Options,
) -> Result<()> {
    sheet.heading(&format!(
        "{}: time until {BURST} requests of a quiet workspace are finished",
        backend.name()
    ));
    for limit in LIMITS {
        let (mut alone, mut beside) = (Vec::new(), Vec::new());
        let mut ratios = Vec::new();
        for _ in 0..options.rounds {
            sheet.progress(&format!("a quiet workspace on {}", backend.name()));
            let quiet = bursts(backend, 0, limit).await?;
            sheet.progress(&format!("and beside a noisy one on {}", backend.name()));
            let noisy = bursts(backend, options.noise, limit).await?;
            ratios.push(noisy / quiet);
            alone.push(quiet);
            beside.push(noisy);
        }
        let outcome = Outcome::default()
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
        sheet.row(&label, &outcome);
    }
    Ok(())
}

/// Seconds until a burst is done; the middle one of several.
async fn bursts(backend: &mut dyn BenchBackend, noise: u32, limit: u32) -> Result<f64> {
    let mut fill = Fill::idle(1, 1).and(1, limit);
    if noise > 0 {
        fill = fill.waiting(noise, 0, 1);
    }
    backend.fill(&fill).await?;
    let store = backend.store(false).await?;
    let tenants = backend.workspaces().await?;
    let (noisy, quiet) = tenants
        .first()
        .zip(tenants.get(1))
        .context("two workspaces")?;
    let work = HashMap::from([(noisy.workspace, WORK)]);
    let (engine, finisher) = Finisher::start(store.clone(), work);
    let runtime = Runtime::start(
        store.clone(),
        Some(Arc::new(engine)),
        RuntimeOptions::new("bench"),
    );
    // Connects, and brings the versions to mind.
    burst(&store, &finisher, quiet).await?;
    if noise > 0 {
        finisher
            .until(|all| all.finished_of(noisy.workspace) >= SETTLED_IN)
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
        refused => bail!("the burst was not taken: {refused:?}"),
    }
    finisher
        .until(|all| all.finished_of(tenant.workspace) >= before + u64::from(BURST))
        .await;
    Ok(begun.elapsed().as_secs_f64())
}
