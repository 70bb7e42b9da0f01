//! Dispatch to an engine that answers instantly: the maximum rate of the dispatcher and its store.

use super::{Options, drain};
use crate::backend::{BenchBackend, Fill, NO_LIMIT};
use crate::engine::InstantEngine;
use crate::printer::Printer;
use crate::report::{BenchResult, median};
use crate::usage::{Usage, UsageMeter};
use anyhow::{Result, ensure};
use std::sync::Arc;

pub(super) async fn run(
    backends: &mut [Box<dyn BenchBackend>],
    printer: &mut Printer,
    options: &Options,
) -> Result<()> {
    printer.heading("Dispatches per second to an engine that answers instantly");
    let requests = options.requests;
    for backend in backends {
        let mut runs: Vec<Usage> = Vec::new();
        for _ in 0..options.rounds {
            printer.progress(&format!("dispatching {requests} on {}", backend.name()));
            let fill = Fill::backlog(requests, options.workspaces, NO_LIMIT);
            runs.push(measure(&mut **backend, &fill, options).await?);
        }
        let rate = median(runs.iter().map(|used| used.rate(requests)).collect());
        let Some(last) = runs.last() else { continue };
        let outcome = BenchResult::default()
            .field("store", backend.name())
            .field("case", "instant")
            .field("requests", requests)
            .field("workspaces", options.workspaces)
            .metric("rate", rate, "requests/s");
        let outcome = last.with_buffers(requests, outcome);
        printer.row(backend.name(), &outcome);
    }
    Ok(())
}

async fn measure(backend: &mut dyn BenchBackend, fill: &Fill, options: &Options) -> Result<Usage> {
    backend.fill(fill).await?;
    let store = backend.store(false).await?;
    let meter = backend.meter().await?;
    // The first call connects.
    store.request_promote_due().await?;
    let usage = UsageMeter::begin(&*meter).await?;
    let dispatched = drain(store, Arc::new(InstantEngine::endless()), options).await?;
    let used = usage.end().await?;
    ensure!(
        dispatched == options.requests,
        "only {dispatched} requests were dispatched"
    );
    Ok(used)
}
