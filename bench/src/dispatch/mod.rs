//! Benchmark of the dispatcher: start rate compared with a bare client, and latency.

mod bare;
mod instant;
mod latency;
mod temporal;

use crate::backend::{Autovacuum, StoreChoice};
use crate::printer::Printer;
use crate::report::Format;
use anyhow::{Result, ensure};
use clap::Args;
use leasehold_core::breaker::BreakerSettings;
use leasehold_engine::Engine;
use leasehold_runtime::{CircuitBreaker, Dispatcher, DispatcherOptions};
use leasehold_store::Store;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Options of the benchmark.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Store to measure; starts a temporary PostgreSQL server
    #[arg(long, value_enum, default_value = "both")]
    store: StoreChoice,
    /// Number of requests to dispatch to the instant engine
    #[arg(long, default_value_t = 20_000)]
    requests: u32,
    /// Number of workspaces
    #[arg(long, default_value_t = 1_000)]
    workspaces: u32,
    /// Maximum concurrent starts of the dispatcher and the bare client
    #[arg(long, default_value_t = 64)]
    concurrency: usize,
    /// Number of starts per turn in Temporal (0 skips Temporal)
    #[arg(long, default_value_t = 1_000)]
    starts: u32,
    /// Number of alternating turns of dispatcher and bare client (short turns, so that both see the same load)
    #[arg(long, default_value_t = 7)]
    turns: u32,
    /// Number of single requests whose latency is measured
    #[arg(long, default_value_t = 600)]
    singles: u32,
    /// Number of rounds with the instant engine; results are medians
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Run small cases (a minute or two)
    #[arg(long, conflicts_with_all = ["requests", "starts", "turns", "singles", "rounds"])]
    quick: bool,
    /// Print JSON lines even on a terminal
    #[arg(long)]
    json: bool,
    /// Print tables even if the output is not a terminal
    #[arg(long, conflicts_with = "json")]
    table: bool,
}

impl Options {
    fn validated(mut self) -> Result<Self> {
        if self.quick {
            self.requests = 3_000;
            self.workspaces = 300;
            self.starts = 300;
            self.turns = 3;
            self.singles = 100;
            self.rounds = 1;
        }
        let counts = [self.requests, self.workspaces, self.rounds, self.turns];
        ensure!(
            counts.iter().all(|count| *count > 0),
            "counts must be at least 1"
        );
        ensure!(self.concurrency > 0, "--concurrency must be at least 1");
        Ok(self)
    }

    fn dispatcher(&self) -> DispatcherOptions {
        DispatcherOptions {
            concurrency: self.concurrency,
            ..DispatcherOptions::new("bench")
        }
    }
}

/// Runs the chosen measurements and prints results as they arrive.
pub(crate) async fn run(options: Options) -> Result<()> {
    let options = options.validated()?;
    let mut printer = Printer::new("dispatch", Format::chosen(options.json, options.table));
    let mut backends = options.store.backends(Autovacuum::Off)?;
    instant::run(&mut backends, &mut printer, &options).await?;
    if options.starts > 0 {
        temporal::run(&mut backends, &mut printer, &options).await?;
    }
    Ok(())
}

/// Dispatches all pending requests and returns their number.
async fn drain(store: Arc<dyn Store>, engine: Arc<dyn Engine>, options: &Options) -> Result<u32> {
    let circuit_breaker = CircuitBreaker::new(BreakerSettings {
        full: u32::try_from(options.concurrency)?,
        ..BreakerSettings::default()
    });
    let dispatcher = Dispatcher::new(
        store,
        engine,
        Arc::new(circuit_breaker),
        options.dispatcher(),
    );
    let cycle = dispatcher.run_once(&CancellationToken::new()).await?;
    let cycle = cycle.unwrap_or_default();
    ensure!(
        cycle.released == 0 && cycle.failed == 0 && cycle.lost == 0,
        "some requests were not dispatched: {cycle:?}"
    );
    Ok(u32::try_from(cycle.dispatched)?)
}
