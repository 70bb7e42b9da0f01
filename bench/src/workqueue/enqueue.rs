//! Enqueue (B1): single jobs from few and many connections, and in bulk.

use super::Options;
use super::jobs::{in_bulk, one_by_one};
use super::limit;
use super::run::{Run, RunMeter, median_run, rate};
use crate::backend::{BenchBackend, Fill};
use crate::printer::Printer;
use crate::report::BenchResult;
use anyhow::Result;
use leasehold_store::Store;

/// How jobs are enqueued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EnqueueMode {
    /// One job per call, from this many connections.
    Singles { connections: u32 },
    /// This many jobs per call, from one connection.
    Bulk { batch: u32 },
}

impl EnqueueMode {
    /// Adds the fields that identify the mode.
    pub(crate) fn fields(self, outcome: BenchResult) -> BenchResult {
        match self {
            Self::Singles { connections } => outcome
                .field("case", "one_by_one")
                .field("connections", connections),
            Self::Bulk { batch } => outcome.field("case", "bulk").field("batch", batch),
        }
    }

    pub(crate) fn label(self) -> String {
        match self {
            Self::Singles { connections: 1 } => "single, 1 connection".to_owned(),
            Self::Singles { connections } => format!("single, {connections} connections"),
            Self::Bulk { batch } => format!("bulk, {batch} per call"),
        }
    }

    fn connections(self) -> u32 {
        match self {
            Self::Singles { connections } => connections,
            Self::Bulk { .. } => 1,
        }
    }
}

pub(super) async fn run(
    backend: &mut dyn BenchBackend,
    printer: &mut Printer,
    options: &Options,
) -> Result<()> {
    printer.bench("enqueue");
    printer.heading(&format!(
        "{}: jobs enqueued per second (B1)",
        backend.name()
    ));
    for (mode, jobs) in options.modes() {
        let (mut results, mut limits) = (Vec::new(), Vec::new());
        for _ in 0..options.rounds {
            printer.progress(&format!(
                "enqueueing {} on {}",
                mode.label(),
                backend.name()
            ));
            results.push(measure(backend, mode, jobs).await?);
            if backend.address().is_some() {
                printer.progress(&format!("plain rows {}", mode.label()));
                limits.push(limit::measure(backend, mode, jobs).await?);
            }
        }
        let about = BenchResult::default().field("store", backend.name());
        let ratio = (!limits.is_empty()).then(|| rate(&results) / rate(&limits));
        let ratio_name = match mode {
            EnqueueMode::Singles { .. } => "ratio_to_limit",
            EnqueueMode::Bulk { .. } => "ratio_to_copy",
        };
        let outcome = mode.fields(about.clone()).field("jobs", jobs);
        let outcome = outcome
            .metric("rate", rate(&results), "jobs/s")
            .optional_metric(ratio_name, ratio, "");
        printer.row(&mode.label(), &costs(&results, outcome));
        if !limits.is_empty() {
            let outcome = mode.fields(about.field("of", "limit")).field("jobs", jobs);
            let outcome = outcome.metric("rate", rate(&limits), "rows/s");
            printer.row("  plain rows", &costs(&limits, outcome));
        }
    }
    Ok(())
}

fn costs(runs: &[Run], outcome: BenchResult) -> BenchResult {
    match median_run(runs) {
        Some(run) => run.costs(outcome),
        None => outcome,
    }
}

/// Measures on a new database.
pub(crate) async fn measure(
    backend: &mut dyn BenchBackend,
    mode: EnqueueMode,
    jobs: u32,
) -> Result<Run> {
    backend.fill(&Fill::default()).await?;
    let begun = RunMeter::new(backend).await?;
    let store = backend.store_with(mode.connections() as usize).await?;
    // Opens connections, creates the queue and prepares statements.
    match mode {
        EnqueueMode::Singles { connections } => {
            one_by_one(&store, 4 * connections, connections).await?
        }
        EnqueueMode::Bulk { .. } => in_bulk(&*store, 100, 100).await?,
    }
    let usage = begun.usage().await?;
    match mode {
        EnqueueMode::Singles { connections } => one_by_one(&store, jobs, connections).await?,
        EnqueueMode::Bulk { batch } => in_bulk(&*store, jobs, batch).await?,
    }
    let used = usage.end().await?;
    drop(store);
    begun.end(backend, jobs, used).await
}

/// Fills the queue without measuring.
pub(crate) async fn fill(store: &dyn Store, jobs: u32) -> Result<()> {
    in_bulk(store, jobs, 10_000).await
}
