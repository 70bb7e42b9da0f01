//! Draining (B2): a full queue, one worker, until the last end is written down. Completed jobs are kept or not.

use super::Options;
use super::crew::{Crew, Hands};
use super::enqueue::fill;
use super::jobs::QUEUE;
use super::run::{Begun, Run, middle, rate};
use crate::backend::{BenchBackend, Fill, StatementCost};
use crate::report::Outcome;
use crate::sheet::Sheet;
use anyhow::{Result, ensure};
use leasehold_store::Store;
use leasehold_store::queue::QueueChange;
use std::sync::Arc;

/// What becomes of completed jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Keep,
    Discard,
}

impl Mode {
    pub(crate) const ALL: [Self; 2] = [Self::Keep, Self::Discard];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Discard => "discard",
        }
    }
}

/// Returns the rate with jobs kept.
pub(super) async fn run(
    backend: &mut dyn BenchBackend,
    sheet: &mut Sheet,
    options: &Options,
) -> Result<f64> {
    sheet.bench("drain");
    sheet.heading(&format!(
        "{}: {} waiting jobs done a second by one worker (B2)",
        backend.name(),
        options.jobs
    ));
    let mut kept = 0.0;
    for mode in Mode::ALL {
        let mut runs = Vec::new();
        let mut statements = Vec::new();
        for _ in 0..options.rounds {
            sheet.progress(&format!("draining ({}) {}", mode.name(), backend.name()));
            let (run, costs) = measure(backend, mode, options.jobs, options.hands).await?;
            runs.push(run);
            statements = costs;
        }
        if mode == Mode::Keep {
            kept = rate(&runs);
        }
        let mut outcome = Outcome::default()
            .field("store", backend.name())
            .field("case", mode.name())
            .field("jobs", options.jobs)
            .metric("rate", rate(&runs), "jobs/s");
        if let Some(run) = middle(&runs) {
            outcome = run.costs(outcome);
        }
        sheet.row(mode.name(), &outcome);
        if options.profile {
            sheet.statements(&statements, options.jobs);
        }
    }
    Ok(kept)
}

/// On a database of its own. Says also which statements took the time.
pub(crate) async fn measure(
    backend: &mut dyn BenchBackend,
    mode: Mode,
    jobs: u32,
    hands: Hands,
) -> Result<(Run, Vec<StatementCost>)> {
    fill_anew(backend, mode, jobs).await?;
    let begun = Begun::new(backend).await?;
    let store = backend.store_with(hands.connections).await?;
    let usage = begun.usage().await?;
    drain(&store, jobs, hands).await?;
    let used = usage.end().await?;
    let statements = begun.statements().await?;
    nothing_left(&*store, jobs, mode).await?;
    drop(store);
    Ok((begun.end(backend, jobs, used).await?, statements))
}

async fn fill_anew(backend: &mut dyn BenchBackend, mode: Mode, jobs: u32) -> Result<()> {
    backend.fill(&Fill::default()).await?;
    let store = backend.store_with(1).await?;
    let change = QueueChange {
        keep_completed: Some(mode == Mode::Keep),
        ..QueueChange::default()
    };
    store.queue_update(QUEUE, &change).await?;
    fill(&*store, jobs).await?;
    drop(store);
    backend.settle().await
}

/// A store with so many jobs that wait; completed ones are kept.
pub(crate) async fn filled(
    backend: &mut dyn BenchBackend,
    jobs: u32,
    hands: Hands,
) -> Result<Arc<dyn Store>> {
    fill_anew(backend, Mode::Keep, jobs).await?;
    backend.store_with(hands.connections).await
}

/// One worker does so many jobs, until the last end is written down.
pub(crate) async fn drain(store: &Arc<dyn Store>, jobs: u32, hands: Hands) -> Result<()> {
    let crew = Crew::start(store.clone(), hands, |_| {})?;
    crew.until(u64::from(jobs)).await;
    let stats = crew.stop().await;
    ensure!(
        stats.completed == u64::from(jobs),
        "not every job was completed: {stats:?}"
    );
    Ok(())
}

async fn nothing_left(store: &dyn Store, jobs: u32, mode: Mode) -> Result<()> {
    let counts = store.queue_counts(QUEUE).await?;
    let kept = match mode {
        Mode::Keep => u64::from(jobs),
        Mode::Discard => 0,
    };
    let open = counts.ready + counts.scheduled + counts.running + counts.failed;
    ensure!(
        open == 0 && counts.completed == kept,
        "jobs are left or lost: {counts:?}"
    );
    Ok(())
}
