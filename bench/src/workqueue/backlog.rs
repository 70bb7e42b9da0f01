//! Backlog (B4): rate of the jobs at the front of the queue, with few and with very many jobs behind them.

use super::Options;
use super::enqueue::fill;
use super::worker::BenchWorker;
use crate::backend::{BenchBackend, Fill};
use crate::printer::Printer;
use crate::report::{BenchResult, median};
use anyhow::Result;
use std::time::Instant;

pub(super) async fn run(
    backend: &mut dyn BenchBackend,
    printer: &mut Printer,
    options: &Options,
) -> Result<()> {
    printer.bench("backlog");
    printer.heading(&format!(
        "{}: rate of the first {} jobs by backlog (B4)",
        backend.name(),
        options.front
    ));
    let mut rates = vec![Vec::new(); options.waiting.len()];
    for _ in 0..options.rounds {
        for (waiting, rates) in options.waiting.iter().zip(&mut rates) {
            printer.progress(&format!("{waiting} waiting on {}", backend.name()));
            rates.push(measure(backend, *waiting, options).await?);
        }
    }
    let first = rates.first().cloned().map(median).unwrap_or_default();
    for (waiting, rates) in options.waiting.iter().zip(rates) {
        let rate = median(rates);
        let outcome = BenchResult::default()
            .field("store", backend.name())
            .field("waiting", *waiting)
            .field("jobs", options.front)
            .metric("rate", rate, "jobs/s")
            .metric("ratio", rate / first, "");
        printer.row(&format!("{waiting} waiting"), &outcome);
    }
    Ok(())
}

/// Returns the jobs per second of a worker after a warm-up of equal size.
async fn measure(backend: &mut dyn BenchBackend, waiting: u32, options: &Options) -> Result<f64> {
    backend.fill(&Fill::default()).await?;
    let store = backend.store_with(1).await?;
    fill(&*store, 2 * options.front + waiting).await?;
    drop(store);
    backend.checkpoint().await?;
    let store = backend.store_with(options.worker.connections).await?;
    let worker = BenchWorker::start(store, options.worker, |_| {})?;
    let front = u64::from(options.front);
    worker.wait_started(front).await;
    let (base, begun) = (worker.count(), Instant::now());
    worker.wait_started(base + front).await;
    let done = worker.count() - base;
    let rate = done as f64 / begun.elapsed().as_secs_f64();
    worker.stop().await;
    Ok(rate)
}
