//! Latency (B3): an idle worker, one job at a time, from the enqueue's commit to the start of its handler.

use super::Options;
use super::crew::{Crew, Hands};
use super::jobs::job;
use super::limit;
use crate::backend::{BenchBackend, Fill};
use crate::report::{Outcome, percentile};
use crate::sheet::Sheet;
use anyhow::{Context, Result};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::sleep;

/// Jobs before those that count: they connect and prepare statements.
pub(crate) const WARM_UPS: u32 = 20;
/// Between jobs, so that the worker is idle again.
pub(crate) const PAUSE: Duration = Duration::from_millis(10);

/// Milliseconds of each job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delays {
    /// From the enqueue's answer, which comes after the commit; nothing if the handler was started before it came.
    pub(crate) after_commit: Vec<f64>,
    /// From the enqueue's call.
    pub(crate) after_call: Vec<f64>,
}

impl Delays {
    pub(crate) fn add(&mut self, called: Instant, committed: Instant, started: Instant) {
        let since = |earlier| started.saturating_duration_since(earlier).as_secs_f64() * 1_000.0;
        self.after_commit.push(since(committed));
        self.after_call.push(since(called));
    }

    pub(crate) fn metrics(&self, outcome: Outcome) -> Outcome {
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
    sheet: &mut Sheet,
    options: &Options,
) -> Result<()> {
    sheet.bench("latency");
    sheet.heading(&format!(
        "{}: from the commit of one enqueue to its handler's start, {} times, idle before (B3)",
        backend.name(),
        options.delays
    ));
    sheet.progress(&format!("timing single jobs on {}", backend.name()));
    let ours = measure(backend, options.delays, options.hands).await?;
    let about = Outcome::default()
        .field("store", backend.name())
        .field("case", "idle");
    let mut outcome = ours.metrics(about.clone());
    let mut plain = None;
    if backend.address().is_some() {
        sheet.progress("timing plain notifications");
        let limit = limit::delays(backend, options.delays).await?;
        outcome = outcome.metric("ratio_to_limit", ratio(&ours, &limit), "");
        plain = Some(limit.metrics(about.field("of", "limit")));
    }
    sheet.row("a worker", &outcome);
    if let Some(plain) = plain {
        sheet.row("  plain row and NOTIFY", &plain);
    }
    Ok(())
}

/// Of the middle ones.
pub(crate) fn ratio(ours: &Delays, others: &Delays) -> f64 {
    percentile(&ours.after_commit, 0.5) / percentile(&others.after_commit, 0.5)
}

/// On a database of its own. Where it has connections the enqueueing has its own.
pub(crate) async fn measure(
    backend: &mut dyn BenchBackend,
    jobs: u32,
    hands: Hands,
) -> Result<Delays> {
    backend.fill(&Fill::default()).await?;
    let store = backend.store_with(hands.connections).await?;
    let other = match backend.address() {
        Some(_) => backend.store_with(1).await?,
        None => Arc::clone(&store),
    };
    let (told, mut started) = mpsc::unbounded_channel();
    let crew = Crew::start(store, hands, move |_| {
        let _ = told.send(Instant::now());
    })?;
    let mut delays = Delays::default();
    for number in 0..jobs + WARM_UPS {
        let job = [job(u64::from(number))];
        let called = Instant::now();
        other.job_enqueue(&job).await?;
        let committed = Instant::now();
        let started = started.recv().await.context("the worker has ended")?;
        if number >= WARM_UPS {
            delays.add(called, committed, started);
        }
        sleep(PAUSE).await;
    }
    crew.stop().await;
    Ok(delays)
}
