//! Draining (B2): one worker completes a full queue. Completed jobs are kept or deleted.

use super::Options;
use super::enqueue::fill;
use super::jobs::QUEUE;
use super::run::{Run, RunMeter, median_run, rate};
use super::worker::{BenchWorker, WorkerOptions};
use crate::backend::{BenchBackend, Fill, StatementCost};
use crate::printer::Printer;
use crate::report::BenchResult;
use anyhow::{Result, ensure};
use leasehold_store::Store;
use leasehold_store::queue::QueueChange;
use std::sync::Arc;

/// Whether completed jobs are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retention {
    Keep,
    Discard,
}

impl Retention {
    pub(crate) const ALL: [Self; 2] = [Self::Keep, Self::Discard];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Discard => "discard",
        }
    }
}

/// Measures both retentions and returns the rate with jobs kept.
pub(super) async fn run(
    backend: &mut dyn BenchBackend,
    printer: &mut Printer,
    options: &Options,
) -> Result<f64> {
    printer.bench("drain");
    printer.heading(&format!(
        "{}: jobs completed per second by one worker, backlog of {} (B2)",
        backend.name(),
        options.jobs
    ));
    let mut kept = 0.0;
    for mode in Retention::ALL {
        let mut runs = Vec::new();
        let mut statements = Vec::new();
        for _ in 0..options.rounds {
            printer.progress(&format!("draining ({}) {}", mode.name(), backend.name()));
            let (run, costs) = measure(backend, mode, options.jobs, options.worker).await?;
            runs.push(run);
            statements = costs;
        }
        if mode == Retention::Keep {
            kept = rate(&runs);
        }
        let mut outcome = BenchResult::default()
            .field("store", backend.name())
            .field("case", mode.name())
            .field("jobs", options.jobs)
            .metric("rate", rate(&runs), "jobs/s");
        if let Some(run) = median_run(&runs) {
            outcome = run.costs(outcome);
        }
        printer.row(mode.name(), &outcome);
        if options.profile {
            printer.statements(&statements, options.jobs);
        }
    }
    Ok(kept)
}

/// Measures on a new database. Also returns the most expensive statements.
pub(crate) async fn measure(
    backend: &mut dyn BenchBackend,
    mode: Retention,
    jobs: u32,
    worker: WorkerOptions,
) -> Result<(Run, Vec<StatementCost>)> {
    refill(backend, mode, jobs).await?;
    let begun = RunMeter::new(backend).await?;
    let store = backend.store_with(worker.connections).await?;
    let usage = begun.usage().await?;
    drain(&store, jobs, worker).await?;
    let used = usage.end().await?;
    let statements = begun.statements().await?;
    assert_drained(&*store, jobs, mode).await?;
    drop(store);
    Ok((begun.end(backend, jobs, used).await?, statements))
}

async fn refill(backend: &mut dyn BenchBackend, mode: Retention, jobs: u32) -> Result<()> {
    backend.fill(&Fill::default()).await?;
    let store = backend.store_with(1).await?;
    let change = QueueChange {
        keep_completed: Some(mode == Retention::Keep),
        ..QueueChange::default()
    };
    store
        .queue_update(QUEUE, &change, &leasehold_store::Actor::Local)
        .await?;
    fill(&*store, jobs).await?;
    drop(store);
    backend.checkpoint().await
}

/// Returns a store with this many queued jobs; completed jobs are kept.
pub(crate) async fn filled_store(
    backend: &mut dyn BenchBackend,
    jobs: u32,
    worker: WorkerOptions,
) -> Result<Arc<dyn Store>> {
    refill(backend, Retention::Keep, jobs).await?;
    backend.store_with(worker.connections).await
}

/// Completes this many jobs with one worker.
pub(crate) async fn drain(store: &Arc<dyn Store>, jobs: u32, worker: WorkerOptions) -> Result<()> {
    let worker = BenchWorker::start(store.clone(), worker, |_| {})?;
    worker.wait_started(u64::from(jobs)).await;
    let stats = worker.stop().await;
    ensure!(
        stats.completed == u64::from(jobs),
        "some jobs were not completed: {stats:?}"
    );
    Ok(())
}

async fn assert_drained(store: &dyn Store, jobs: u32, mode: Retention) -> Result<()> {
    let counts = store.queue_counts(QUEUE).await?;
    let kept = match mode {
        Retention::Keep => u64::from(jobs),
        Retention::Discard => 0,
    };
    let open = counts.ready + counts.scheduled + counts.running + counts.failed;
    ensure!(
        open == 0 && counts.completed == kept,
        "unexpected job counts after draining: {counts:?}"
    );
    Ok(())
}
