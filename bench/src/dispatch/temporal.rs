//! Dispatch to a Temporal server compared with a bare client. They alternate, because a development server slows down as it fills.

use super::{Options, bare, drain, latency};
use crate::backend::{BenchBackend, Fill, NO_LIMIT};
use crate::cpu;
use crate::printer::Printer;
use crate::report::{BenchResult, median};
use crate::usage::{Usage, UsageMeter};
use anyhow::{Result, ensure};
use leasehold_engine::Engine;
use leasehold_engine_temporal::{TemporalEngine, TemporalOptions};
use leasehold_testkit::TestTemporal;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// Load of the latency measurement, as a fraction of the bare client's rate.
const LATENCY_LOAD: f64 = 0.1;
/// Workspaces of the requests; each has its own version, which is read once.
const WORKSPACES: u32 = 50;
/// Warm-up starts of the bare client.
const WARM_UPS: u32 = 300;
/// The server counts as idle when it uses at most `IDLE_CPU_SECONDS` of CPU in this interval.
const IDLE_INTERVAL: Duration = Duration::from_millis(500);
const IDLE_CPU_SECONDS: f64 = 0.03;
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);

pub(super) async fn run(
    backends: &mut [Box<dyn BenchBackend>],
    printer: &mut Printer,
    options: &Options,
) -> Result<()> {
    printer.progress("starting Temporal");
    let server = tokio::task::spawn_blocking(|| TestTemporal::start(Default::default())).await??;
    let engine: Arc<dyn Engine> = Arc::new(TemporalEngine::new(TemporalOptions {
        address: server.address().to_owned(),
        ..TemporalOptions::default()
    })?);
    let temporal = Temporal {
        engine,
        server: server.server_pid(),
    };
    temporal.bare(WARM_UPS, options).await?;

    printer.heading(
        "Starts per second in a Temporal server, compared with a bare client of the same concurrency",
    );
    let mut runs: Vec<Vec<Run>> = backends.iter().map(|_| Vec::new()).collect();
    let mut before = temporal.bare(options.starts, options).await?;
    for _ in 0..options.turns {
        for (backend, runs) in backends.iter_mut().zip(&mut runs) {
            let (starts, name) = (options.starts, backend.name());
            printer.progress(&format!(
                "starting {starts} executions from {name} and from a bare client"
            ));
            let used = temporal.dispatch(&mut **backend, options).await?;
            let after = temporal.bare(starts, options).await?;
            runs.push(Run {
                before,
                used,
                after,
            });
            before = after;
        }
    }
    let mut slowest = f64::INFINITY;
    for (backend, runs) in backends.iter().zip(&runs) {
        let bare = median(runs.iter().map(|run| run.bare()).collect());
        slowest = slowest.min(bare);
        printer.row(backend.name(), &outcome(&**backend, runs, bare, options));
    }
    latency::run(
        backends,
        printer,
        temporal.engine,
        slowest * LATENCY_LOAD,
        options,
    )
    .await
}

/// One run of the dispatcher between two runs of the bare client.
struct Run {
    before: f64,
    used: Usage,
    after: f64,
}

impl Run {
    fn bare(&self) -> f64 {
        (self.before + self.after) / 2.0
    }
}

fn outcome(backend: &dyn BenchBackend, runs: &[Run], bare: f64, options: &Options) -> BenchResult {
    let rate = |run: &Run| run.used.rate(options.starts);
    let ratio = |run: &Run| rate(run) / run.bare();
    let ratios: Vec<f64> = runs.iter().map(ratio).collect();
    let (least, most) = ratios
        .iter()
        .fold((f64::INFINITY, 0.0f64), |(least, most), ratio| {
            (least.min(*ratio), most.max(*ratio))
        });
    let outcome = BenchResult::default()
        .field("store", backend.name())
        .field("case", "temporal")
        .field("starts", options.starts)
        .field("concurrency", options.concurrency)
        .metric("ratio", median(ratios), "")
        .metric("ratio_least", least, "")
        .metric("ratio_most", most, "")
        .metric(
            "rate",
            median(runs.iter().map(rate).collect()),
            "requests/s",
        )
        .metric("bare", bare, "requests/s");
    match runs.last() {
        Some(run) => run.used.per_request(options.starts, outcome),
        None => outcome,
    }
}

/// The Temporal server and its client.
struct Temporal {
    engine: Arc<dyn Engine>,
    server: Option<u32>,
}

impl Temporal {
    /// Returns the starts per second of a bare client.
    async fn bare(&self, count: u32, options: &Options) -> Result<f64> {
        self.wait_until_idle().await;
        bare::rate(self.engine.clone(), count, options.concurrency).await
    }

    /// Dispatches `options.starts` requests and returns the cost.
    async fn dispatch(&self, backend: &mut dyn BenchBackend, options: &Options) -> Result<Usage> {
        backend
            .fill(&Fill::backlog(options.starts, WORKSPACES, NO_LIMIT))
            .await?;
        let store = backend.store(false).await?;
        let meter = backend.meter().await?;
        // The first call connects.
        store.request_promote_due().await?;
        self.wait_until_idle().await;
        let usage = UsageMeter::begin(&*meter).await?;
        let dispatched = drain(store, self.engine.clone(), options).await?;
        let used = usage.end().await?;
        ensure!(
            dispatched == options.starts,
            "only {dispatched} requests were dispatched"
        );
        Ok(used)
    }

    /// Waits until the server has finished the background work of earlier starts, so that it does not distort the next run.
    async fn wait_until_idle(&self) {
        let Some(server) = self.server else { return };
        let begun = Instant::now();
        while begun.elapsed() < IDLE_TIMEOUT {
            let before = cpu::tree_seconds(server);
            sleep(IDLE_INTERVAL).await;
            match cpu::tree_seconds(server).zip(before) {
                Some((after, before)) if after - before > IDLE_CPU_SECONDS => {}
                _ => return,
            }
        }
    }
}
