//! Backlog (B4): how fast jobs at the front of the queue are done when few and when very many wait behind them.

use super::Options;
use super::crew::Crew;
use super::enqueue::fill;
use crate::backend::{BenchBackend, Fill};
use crate::report::{Outcome, median};
use crate::sheet::Sheet;
use anyhow::Result;
use std::time::Instant;

pub(super) async fn run(
    backend: &mut dyn BenchBackend,
    sheet: &mut Sheet,
    options: &Options,
) -> Result<()> {
    sheet.bench("backlog");
    sheet.heading(&format!(
        "{}: rate of the first {} jobs with ever more behind them (B4)",
        backend.name(),
        options.front
    ));
    let mut rates = vec![Vec::new(); options.waiting.len()];
    for _ in 0..options.rounds {
        for (waiting, rates) in options.waiting.iter().zip(&mut rates) {
            sheet.progress(&format!("{waiting} waiting on {}", backend.name()));
            rates.push(measure(backend, *waiting, options).await?);
        }
    }
    let first = rates.first().cloned().map(median).unwrap_or_default();
    for (waiting, rates) in options.waiting.iter().zip(rates) {
        let rate = median(rates);
        let outcome = Outcome::default()
            .field("store", backend.name())
            .field("waiting", *waiting)
            .field("jobs", options.front)
            .metric("rate", rate, "jobs/s")
            .metric("ratio", rate / first, "");
        sheet.row(&format!("{waiting} waiting"), &outcome);
    }
    Ok(())
}

/// Jobs a second of a worker that has found its pace: as many go before those that count.
async fn measure(backend: &mut dyn BenchBackend, waiting: u32, options: &Options) -> Result<f64> {
    backend.fill(&Fill::default()).await?;
    let store = backend.store_with(1).await?;
    fill(&*store, 2 * options.front + waiting).await?;
    drop(store);
    backend.settle().await?;
    let store = backend.store_with(options.hands.connections).await?;
    let crew = Crew::start(store, options.hands, |_| {})?;
    let front = u64::from(options.front);
    crew.until(front).await;
    let (base, begun) = (crew.count(), Instant::now());
    crew.until(base + front).await;
    let done = crew.count() - base;
    let rate = done as f64 / begun.elapsed().as_secs_f64();
    crew.stop().await;
    Ok(rate)
}
