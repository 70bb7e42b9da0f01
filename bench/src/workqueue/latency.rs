//! Latency (B3): from the commit of an enqueue to the start of its handler, one job at a time, idle worker.

use super::Options;
use super::jobs::job;
use super::limit;
use super::worker::{BenchWorker, WorkerOptions};
use crate::backend::{BenchBackend, Fill};
use crate::printer::Printer;
use crate::report::{BenchResult, percentile};
use anyhow::{Context, Result};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::sleep;

/// Warm-up jobs: they open connections and prepare statements.
pub(crate) const WARM_UPS: u32 = 20;
/// Pause between jobs, so that the worker becomes idle.
pub(crate) const PAUSE: Duration = Duration::from_millis(10);

/// Latencies of jobs, in milliseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delays {
    /// From the enqueue's answer, which follows the commit; 0 if the handler started before the answer arrived.
    pub(crate) after_commit: Vec<f64>,
    /// From the start of the enqueue call.
    pub(crate) after_call: Vec<f64>,
}

impl Delays {
    pub(crate) fn add(&mut self, called: Instant, committed: Instant, started: Instant) {
        let since = |earlier| started.saturating_duration_since(earlier).as_secs_f64() * 1_000.0;
        self.after_commit.push(since(committed));
        self.after_call.push(since(called));
    }

    pub(crate) fn metrics(&self, outcome: BenchResult) -> BenchResult {
        outcome
            .metric("p50", percentile(&self.after_commit, 0.5), "ms")
            .metric("p90", percentile(&self.after_commit, 0.9), "ms")
            .metric("p99", percentile(&self.after_commit, 0.99), "ms")
            .metric("worst", percentile(&self.after_commit, 1.0), "ms")
            .metric("p50_from_call", percentile(&self.after_call, 0.5), "ms")
            .metric("p99_from_call", percentile(&self.after_call, 0.99), "ms")
    }
}

pub(super) async fn run(
    backend: &mut dyn BenchBackend,
    printer: &mut Printer,
    options: &Options,
) -> Result<()> {
    printer.bench("latency");
    printer.heading(&format!(
        "{}: latency from the commit of an enqueue to the start of its handler, idle worker, {} jobs (B3)",
        backend.name(),
        options.delays
    ));
    printer.progress(&format!("timing single jobs on {}", backend.name()));
    let results = measure(backend, options.delays, options.worker).await?;
    let about = BenchResult::default()
        .field("store", backend.name())
        .field("case", "idle");
    let mut outcome = results.metrics(about.clone());
    let mut plain = None;
    if backend.address().is_some() {
        printer.progress("timing a plain INSERT and NOTIFY");
        let limit = limit::delays(backend, options.delays).await?;
        outcome = outcome.metric("ratio_to_limit", ratio(&results, &limit), "");
        plain = Some(limit.metrics(about.field("of", "limit")));
    }
    printer.row("worker", &outcome);
    if let Some(plain) = plain {
        printer.row("  plain row and NOTIFY", &plain);
    }
    Ok(())
}

/// Returns the ratio of the medians.
pub(crate) fn ratio(own: &Delays, others: &Delays) -> f64 {
    percentile(&own.after_commit, 0.5) / percentile(&others.after_commit, 0.5)
}

/// Measures on a new database. On PostgreSQL the enqueue uses its own connection.
pub(crate) async fn measure(
    backend: &mut dyn BenchBackend,
    jobs: u32,
    worker: WorkerOptions,
) -> Result<Delays> {
    backend.fill(&Fill::default()).await?;
    let store = backend.store_with(worker.connections).await?;
    let other = match backend.address() {
        Some(_) => backend.store_with(1).await?,
        None => Arc::clone(&store),
    };
    let (sender, mut started) = mpsc::unbounded_channel();
    let worker = BenchWorker::start(store, worker, move |_| {
        let _ = sender.send(Instant::now());
    })?;
    let mut delays = Delays::default();
    for number in 0..jobs + WARM_UPS {
        let job = [job(u64::from(number))];
        let called = Instant::now();
        other.job_enqueue(&job).await?;
        let committed = Instant::now();
        let started = started.recv().await.context("the worker stopped")?;
        if number >= WARM_UPS {
            delays.add(called, committed, started);
        }
        sleep(PAUSE).await;
    }
    worker.stop().await;
    Ok(delays)
}
