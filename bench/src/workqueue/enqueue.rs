//! Enqueueing (B1): one by one from few and many connections, and in bulk.

use super::Options;
use super::jobs::{in_bulk, one_by_one};
use super::limit;
use super::run::{Begun, Run, middle, rate};
use crate::backend::{BenchBackend, Fill};
use crate::report::Outcome;
use crate::sheet::Sheet;
use anyhow::Result;
use leasehold_store::Store;

/// How jobs are enqueued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// One a call, from so many connections.
    Singles { connections: u32 },
    /// So many a call, from one connection.
    Bulk { batch: u32 },
}

impl Way {
    /// Adds what tells it from others.
    pub(crate) fn fields(self, outcome: Outcome) -> Outcome {
        match self {
            Self::Singles { connections } => outcome
                .field("case", "one_by_one")
                .field("connections", connections),
            Self::Bulk { batch } => outcome.field("case", "bulk").field("batch", batch),
        }
    }

    pub(crate) fn label(self) -> String {
        match self {
            Self::Singles { connections: 1 } => "one by one, 1 connection".to_owned(),
            Self::Singles { connections } => format!("one by one, {connections} connections"),
            Self::Bulk { batch } => format!("in bulk, {batch} a call"),
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
    sheet: &mut Sheet,
    options: &Options,
) -> Result<()> {
    sheet.bench("enqueue");
    sheet.heading(&format!("{}: jobs enqueued a second (B1)", backend.name()));
    for (way, jobs) in options.ways() {
        let (mut ours, mut limits) = (Vec::new(), Vec::new());
        for _ in 0..options.rounds {
            sheet.progress(&format!("enqueueing {} on {}", way.label(), backend.name()));
            ours.push(measure(backend, way, jobs).await?);
            if backend.address().is_some() {
                sheet.progress(&format!("plain rows {}", way.label()));
                limits.push(limit::measure(backend, way, jobs).await?);
            }
        }
        let about = Outcome::default().field("store", backend.name());
        let ratio = (!limits.is_empty()).then(|| rate(&ours) / rate(&limits));
        let ratio_name = match way {
            Way::Singles { .. } => "ratio_to_limit",
            Way::Bulk { .. } => "ratio_to_copy",
        };
        let outcome = way.fields(about.clone()).field("jobs", jobs);
        let outcome = outcome
            .metric("rate", rate(&ours), "jobs/s")
            .maybe(ratio_name, ratio, "");
        sheet.row(&way.label(), &costs(&ours, outcome));
        if !limits.is_empty() {
            let outcome = way.fields(about.field("of", "limit")).field("jobs", jobs);
            let outcome = outcome.metric("rate", rate(&limits), "rows/s");
            sheet.row("  plain rows", &costs(&limits, outcome));
        }
    }
    Ok(())
}

fn costs(runs: &[Run], outcome: Outcome) -> Outcome {
    match middle(runs) {
        Some(run) => run.costs(outcome),
        None => outcome,
    }
}

/// On a database of its own.
pub(crate) async fn measure(backend: &mut dyn BenchBackend, way: Way, jobs: u32) -> Result<Run> {
    backend.fill(&Fill::default()).await?;
    let begun = Begun::new(backend).await?;
    let store = backend.store_with(way.connections() as usize).await?;
    // Connects, makes the queue, and prepares statements.
    match way {
        Way::Singles { connections } => one_by_one(&store, 4 * connections, connections).await?,
        Way::Bulk { .. } => in_bulk(&*store, 100, 100).await?,
    }
    let usage = begun.usage().await?;
    match way {
        Way::Singles { connections } => one_by_one(&store, jobs, connections).await?,
        Way::Bulk { batch } => in_bulk(&*store, jobs, batch).await?,
    }
    let used = usage.end().await?;
    drop(store);
    begun.end(backend, jobs, used).await
}

/// Fills the queue; nothing is measured.
pub(crate) async fn fill(store: &dyn Store, jobs: u32) -> Result<()> {
    in_bulk(store, jobs, 10_000).await
}
