//! The dispatcher's bench: how fast it starts executions, beside a bare client, and how soon. What is measured is in the modules.

mod at_once;
mod bare;
mod latency;
mod temporal;

use crate::backend::{Upkeep, Which};
use crate::report::Format;
use crate::sheet::Sheet;
use anyhow::{Result, ensure};
use clap::Args;
use leasehold_core::breaker::BreakerSettings;
use leasehold_engine::Engine;
use leasehold_runtime::{Dispatcher, DispatcherOptions, Gate};
use leasehold_store::Store;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// What can be asked of the bench.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// The store; a PostgreSQL server is started for it
    #[arg(long, value_enum, default_value = "both")]
    store: Which,
    /// Requests that wait for the engine that answers at once
    #[arg(long, default_value_t = 20_000)]
    requests: u32,
    /// Workspaces they wait in
    #[arg(long, default_value_t = 1_000)]
    workspaces: u32,
    /// Starts under way at most, of the dispatcher and of the bare client
    #[arg(long, default_value_t = 64)]
    concurrency: usize,
    /// Starts in Temporal that are timed in one go; 0 leaves Temporal out
    #[arg(long, default_value_t = 1_000)]
    starts: u32,
    /// How often the dispatcher takes turns with the bare client: short turns, so that both meet the same weather
    #[arg(long, default_value_t = 7)]
    turns: u32,
    /// Requests enqueued one by one, whose way to DISPATCHED is timed
    #[arg(long, default_value_t = 600)]
    singles: u32,
    /// How often the engine that answers at once is measured; medians are shown
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Small: a minute or two
    #[arg(long, conflicts_with_all = ["requests", "starts", "turns", "singles", "rounds"])]
    quick: bool,
    /// Print JSON lines even on a terminal
    #[arg(long)]
    json: bool,
    /// Print tables even where there is no terminal
    #[arg(long, conflicts_with = "json")]
    table: bool,
}

impl Options {
    fn settled(mut self) -> Result<Self> {
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

/// Measures everything asked for and prints it as it comes.
pub(crate) async fn run(options: Options) -> Result<()> {
    let options = options.settled()?;
    let mut sheet = Sheet::new("dispatch", Format::chosen(options.json, options.table));
    let mut backends = options.store.backends(Upkeep::None)?;
    at_once::run(&mut backends, &mut sheet, &options).await?;
    if options.starts > 0 {
        temporal::run(&mut backends, &mut sheet, &options).await?;
    }
    Ok(())
}

/// Dispatches all that waits and says how many that was.
async fn drain(store: Arc<dyn Store>, engine: Arc<dyn Engine>, options: &Options) -> Result<u32> {
    let gate = Gate::new(BreakerSettings {
        full: u32::try_from(options.concurrency)?,
        ..BreakerSettings::default()
    });
    let dispatcher = Dispatcher::new(store, engine, Arc::new(gate), options.dispatcher());
    let cycle = dispatcher.run_once(&CancellationToken::new()).await?;
    let cycle = cycle.unwrap_or_default();
    ensure!(
        cycle.released == 0 && cycle.failed == 0 && cycle.lost == 0,
        "not everything was dispatched: {cycle:?}"
    );
    Ok(u32::try_from(cycle.dispatched)?)
}
