//! Dispatch to an engine that answers at once: what the dispatcher and its store can do at most.

use super::{Options, drain};
use crate::backend::{BenchBackend, Fill, NO_LIMIT};
use crate::engine::AtOnce;
use crate::report::{Outcome, median};
use crate::sheet::Sheet;
use crate::usage::{Usage, Used};
use anyhow::{Result, ensure};
use std::sync::Arc;

pub(super) async fn run(
    backends: &mut [Box<dyn BenchBackend>],
    sheet: &mut Sheet,
    options: &Options,
) -> Result<()> {
    sheet.heading("Dispatches a second to an engine that answers at once");
    let requests = options.requests;
    for backend in backends {
        let mut runs: Vec<Used> = Vec::new();
        for _ in 0..options.rounds {
            sheet.progress(&format!("dispatching {requests} on {}", backend.name()));
            let fill = Fill::backlog(requests, options.workspaces, NO_LIMIT);
            runs.push(measure(&mut **backend, &fill, options).await?);
        }
        let rate = median(runs.iter().map(|used| used.rate(requests)).collect());
        let Some(last) = runs.last() else { continue };
        let outcome = Outcome::default()
            .field("store", backend.name())
            .field("case", "at_once")
            .field("requests", requests)
            .field("workspaces", options.workspaces)
            .metric("rate", rate, "requests/s");
        let outcome = last.with_buffers(requests, outcome);
        sheet.row(backend.name(), &outcome);
    }
    Ok(())
}

async fn measure(backend: &mut dyn BenchBackend, fill: &Fill, options: &Options) -> Result<Used> {
    backend.fill(fill).await?;
    let store = backend.store(false).await?;
    let meter = backend.meter().await?;
    // The first call connects.
    store.request_settle().await?;
    let usage = Usage::begin(&*meter).await?;
    let dispatched = drain(store, Arc::new(AtOnce::endless()), options).await?;
    let used = usage.end().await?;
    ensure!(
        dispatched == options.requests,
        "only {dispatched} were dispatched"
    );
    Ok(used)
}
