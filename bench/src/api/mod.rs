//! The bench of the HTTP API (B10): enqueueing one by one and in batches, as a ratio to the store itself, and how long a call takes under open load.

mod callers;
mod served;

use crate::backend::{BenchBackend, BenchWorkspace, Fill, NO_LIMIT, Upkeep, Which};
use crate::report::{Format, Outcome, median, percentile};
use crate::sheet::Sheet;
use anyhow::{Context, Result, ensure};
use callers::{Calls, Direct, OverHttp};
use clap::Args;
use served::Served;
use std::time::Instant;

/// What can be asked of the bench.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// The store; a PostgreSQL server is started for it
    #[arg(long, value_enum, default_value = "both")]
    store: Which,
    /// Requests to enqueue one by one
    #[arg(long, default_value_t = 30_000)]
    singles: u32,
    /// Connections they come from
    #[arg(long, default_value_t = 50)]
    connections: u32,
    /// Requests to enqueue in batches
    #[arg(long, default_value_t = 200_000)]
    many: u32,
    /// Requests a batch
    #[arg(long, default_value_t = 100)]
    batch: u32,
    /// Connections the batches come from
    #[arg(long, default_value_t = 8)]
    batch_connections: u32,
    /// Seconds of open load
    #[arg(long, default_value_t = 20)]
    open_seconds: u32,
    /// Calls a second then; a third of what is reached one by one unless told
    #[arg(long)]
    open_rate: Option<f64>,
    /// How often everything is measured; medians are shown
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Small: half a minute a store
    #[arg(long, conflicts_with_all = ["singles", "many", "open_seconds", "rounds"])]
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
            (self.singles, self.many) = (5_000, 50_000);
            (self.open_seconds, self.rounds) = (5, 1);
        }
        let counts = [
            self.singles,
            self.connections,
            self.many,
            self.batch,
            self.batch_connections,
            self.open_seconds,
            self.rounds,
        ];
        ensure!(
            counts.iter().all(|count| *count > 0),
            "counts must be at least 1"
        );
        Ok(self)
    }

    /// The load of each case: its name, and what is called.
    fn cases(&self) -> [(&'static str, Calls); 2] {
        let singles = Calls {
            requests: self.singles,
            batch: 1,
            connections: self.connections,
        };
        let many = Calls {
            requests: self.many,
            batch: self.batch,
            connections: self.batch_connections,
        };
        [("single", singles), ("batch", many)]
    }
}

/// Measures everything asked for and prints it as it comes.
pub(crate) async fn run(options: Options) -> Result<()> {
    let options = options.settled()?;
    let mut sheet = Sheet::new("api", Format::chosen(options.json, options.table));
    for mut backend in options.store.backends(Upkeep::Ordinary)? {
        let name = backend.name();
        sheet.heading(&format!("{name}: requests enqueued over HTTP (B10)"));
        let mut reached = None;
        for (case, calls) in options.cases() {
            let rate = rates(&mut *backend, &mut sheet, &options, (case, calls)).await?;
            reached.get_or_insert(rate);
        }
        let rate = options.open_rate.or(reached.map(|rate| rate / 3.0));
        let rate = rate.context("nothing was reached")?;
        open_load(&mut *backend, &mut sheet, &options, rate).await?;
    }
    Ok(())
}

/// One case over HTTP and on the store itself, alternating. Returns what HTTP reached.
async fn rates(
    backend: &mut dyn BenchBackend,
    sheet: &mut Sheet,
    options: &Options,
    (case, calls): (&'static str, Calls),
) -> Result<f64> {
    let (mut over_http, mut direct) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        sheet.progress(&format!("{case} on {}, the store itself", backend.name()));
        direct.push(measure_direct(backend, calls).await?);
        sheet.progress(&format!("{case} on {}, over HTTP", backend.name()));
        over_http.push(measure_http(backend, calls).await?);
    }
    let (over_http, direct) = (median(over_http), median(direct));
    let outcome = Outcome::default()
        .field("store", backend.name())
        .field("case", case)
        .field("connections", calls.connections)
        .field("batch", calls.batch)
        .metric("rate", over_http, "requests/s")
        .metric("store_rate", direct, "requests/s")
        .metric("ratio", over_http / direct, "");
    let label = format!("{case}, {} connections", calls.connections);
    sheet.row(&label, &outcome);
    Ok(over_http)
}

async fn open_load(
    backend: &mut dyn BenchBackend,
    sheet: &mut Sheet,
    options: &Options,
    rate: f64,
) -> Result<()> {
    sheet.progress(&format!("open load on {}", backend.name()));
    let (served, tenant) = serve(backend).await?;
    let calls = Calls {
        requests: (rate * f64::from(options.open_seconds)) as u32,
        batch: 1,
        connections: options.connections,
    };
    let http = OverHttp::new(&served, tenant);
    callers::run(&http, calls.warm_up()).await?;
    let delays = callers::run_open(&http, calls, rate).await?;
    served.stop().await;
    let outcome = Outcome::default()
        .field("store", backend.name())
        .field("case", "open")
        .field("connections", calls.connections)
        .metric("rate", rate, "requests/s")
        .metric("p50", percentile(&delays, 0.5), "ms")
        .metric("p90", percentile(&delays, 0.9), "ms")
        .metric("p99", percentile(&delays, 0.99), "ms");
    sheet.row("open load", &outcome);
    Ok(())
}

async fn measure_direct(backend: &mut dyn BenchBackend, calls: Calls) -> Result<f64> {
    let tenant = fresh(backend).await?;
    let store = backend.store(false).await?;
    let direct = Direct::new(store, tenant);
    callers::run(&direct, calls.warm_up()).await?;
    let begun = Instant::now();
    callers::run(&direct, calls).await?;
    Ok(f64::from(calls.requests) / begun.elapsed().as_secs_f64())
}

async fn measure_http(backend: &mut dyn BenchBackend, calls: Calls) -> Result<f64> {
    let (served, tenant) = serve(backend).await?;
    let http = OverHttp::new(&served, tenant);
    callers::run(&http, calls.warm_up()).await?;
    let begun = Instant::now();
    callers::run(&http, calls).await?;
    let rate = f64::from(calls.requests) / begun.elapsed().as_secs_f64();
    served.stop().await;
    Ok(rate)
}

async fn fresh(backend: &mut dyn BenchBackend) -> Result<BenchWorkspace> {
    backend.fill(&Fill::idle(1, NO_LIMIT)).await?;
    let tenants = backend.workspaces().await?;
    tenants
        .into_iter()
        .next()
        .context("no workspace was filled in")
}

async fn serve(backend: &mut dyn BenchBackend) -> Result<(Served, BenchWorkspace)> {
    let tenant = fresh(backend).await?;
    let store = backend.store(false).await?;
    Ok((Served::start(store, tenant.workspace).await?, tenant))
}
