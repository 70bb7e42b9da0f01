//! Dispatch to a real Temporal server beside a bare client, by turns, since a development server slows down as it fills.

use super::{Options, bare, drain, latency};
use crate::backend::{BenchBackend, Fill, NO_LIMIT};
use crate::processor;
use crate::report::{Outcome, median};
use crate::sheet::Sheet;
use crate::usage::{Usage, Used};
use anyhow::{Result, ensure};
use leasehold_engine::Engine;
use leasehold_engine_temporal::{TemporalEngine, TemporalOptions};
use leasehold_testkit::TestTemporal;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// Latencies are taken at this part of what a bare client reaches.
const TENTH: f64 = 0.1;
/// Workspaces whose requests are started; each has a version of its own, which is read once.
const WORKSPACES: u32 = 50;
/// Bare starts before anything is timed.
const WARM_UPS: u32 = 300;
/// The server rests when it uses no more than so many seconds of a processor in that time.
const REST: Duration = Duration::from_millis(500);
const RESTING: f64 = 0.03;
const REST_AT_MOST: Duration = Duration::from_secs(15);

pub(super) async fn run(
    backends: &mut [Box<dyn BenchBackend>],
    sheet: &mut Sheet,
    options: &Options,
) -> Result<()> {
    sheet.progress("starting Temporal");
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

    sheet.heading(
        "Starts a second in a real Temporal server, beside a bare client with the same concurrency",
    );
    let mut runs: Vec<Vec<Run>> = backends.iter().map(|_| Vec::new()).collect();
    let mut before = temporal.bare(options.starts, options).await?;
    for _ in 0..options.turns {
        for (backend, runs) in backends.iter_mut().zip(&mut runs) {
            let (starts, name) = (options.starts, backend.name());
            sheet.progress(&format!("starting {starts} from {name}, and barely"));
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
        sheet.row(backend.name(), &outcome(&**backend, runs, bare, options));
    }
    latency::run(backends, sheet, temporal.engine, slowest * TENTH, options).await
}

/// One run of the dispatcher, between two of the bare client.
struct Run {
    before: f64,
    used: Used,
    after: f64,
}

impl Run {
    fn bare(&self) -> f64 {
        (self.before + self.after) / 2.0
    }
}

fn outcome(backend: &dyn BenchBackend, runs: &[Run], bare: f64, options: &Options) -> Outcome {
    let rate = |run: &Run| run.used.rate(options.starts);
    let ratio = |run: &Run| rate(run) / run.bare();
    let ratios: Vec<f64> = runs.iter().map(ratio).collect();
    let (least, most) = ratios
        .iter()
        .fold((f64::INFINITY, 0.0f64), |(least, most), ratio| {
            (least.min(*ratio), most.max(*ratio))
        });
    let outcome = Outcome::default()
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
        Some(run) => run.used.of_each(options.starts, outcome),
        None => outcome,
    }
}

/// The server and the way to it.
struct Temporal {
    engine: Arc<dyn Engine>,
    server: Option<u32>,
}

impl Temporal {
    /// Starts a second of a bare client.
    async fn bare(&self, count: u32, options: &Options) -> Result<f64> {
        self.rests().await;
        bare::rate(self.engine.clone(), count, options.concurrency).await
    }

    /// What dispatching that many costs.
    async fn dispatch(&self, backend: &mut dyn BenchBackend, options: &Options) -> Result<Used> {
        backend
            .fill(&Fill::backlog(options.starts, WORKSPACES, NO_LIMIT))
            .await?;
        let store = backend.store(false).await?;
        let meter = backend.meter().await?;
        // The first call connects.
        store.request_settle().await?;
        self.rests().await;
        let usage = Usage::begin(&*meter).await?;
        let dispatched = drain(store, self.engine.clone(), options).await?;
        let used = usage.end().await?;
        ensure!(
            dispatched == options.starts,
            "only {dispatched} were dispatched"
        );
        Ok(used)
    }

    /// Waits until the server has done what earlier starts left it to do, so that nobody pays for another's.
    async fn rests(&self) {
        let Some(server) = self.server else { return };
        let begun = Instant::now();
        while begun.elapsed() < REST_AT_MOST {
            let before = processor::of_family(server);
            sleep(REST).await;
            match processor::of_family(server).zip(before) {
                Some((after, before)) if after - before > RESTING => {}
                _ => return,
            }
        }
    }
}
