//! Benchmark of the HTTP API (B10): enqueue rates, single and batched, compared with direct store calls, and latency under open-loop load.

mod callers;
mod server;

use crate::backend::{Autovacuum, BenchBackend, BenchWorkspace, Fill, NO_LIMIT, StoreChoice};
use crate::printer::Printer;
use crate::report::{BenchResult, Format, median, percentile};
use crate::usage::{Usage, UsageMeter};
use anyhow::{Context, Result, ensure};
use callers::{HttpTarget, LoadSpec, StoreTarget};
use clap::Args;
use server::BenchServer;
use std::time::Instant;

/// Options of the benchmark.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Store to measure; starts a temporary PostgreSQL server
    #[arg(long, value_enum, default_value = "both")]
    store: StoreChoice,
    /// Number of requests to enqueue singly
    #[arg(long, default_value_t = 30_000)]
    singles: u32,
    /// Number of connections for single enqueues
    #[arg(long, default_value_t = 50)]
    connections: u32,
    /// Number of requests to enqueue in batches
    #[arg(long, default_value_t = 200_000)]
    many: u32,
    /// Requests per batch
    #[arg(long, default_value_t = 100)]
    batch: u32,
    /// Number of connections for batches
    #[arg(long, default_value_t = 8)]
    batch_connections: u32,
    /// Duration of the open-loop load, in seconds
    #[arg(long, default_value_t = 20)]
    open_seconds: u32,
    /// Calls per second of the open-loop load [default: a third of the single rate]
    #[arg(long)]
    open_rate: Option<f64>,
    /// Number of rounds; results are medians
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Run small cases (half a minute per store)
    #[arg(long, conflicts_with_all = ["singles", "many", "open_seconds", "rounds"])]
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

    /// Returns the name and load of each case.
    fn cases(&self) -> [(&'static str, LoadSpec); 2] {
        let singles = LoadSpec {
            requests: self.singles,
            batch: 1,
            connections: self.connections,
        };
        let many = LoadSpec {
            requests: self.many,
            batch: self.batch,
            connections: self.batch_connections,
        };
        [("single", singles), ("batch", many)]
    }
}

/// Runs the chosen measurements and prints results as they arrive.
pub(crate) async fn run(options: Options) -> Result<()> {
    let options = options.validated()?;
    let mut printer = Printer::new("api", Format::chosen(options.json, options.table));
    for mut backend in options.store.backends(Autovacuum::On)? {
        let name = backend.name();
        printer.heading(&format!(
            "{name}: requests enqueued over HTTP, compared with direct store calls (B10)"
        ));
        let mut reached = None;
        for (case, load) in options.cases() {
            let rate = rates(&mut *backend, &mut printer, &options, (case, load)).await?;
            reached.get_or_insert(rate);
        }
        let rate = options.open_rate.or(reached.map(|rate| rate / 3.0));
        let rate = rate.context("no rate was measured")?;
        open_load(&mut *backend, &mut printer, &options, rate).await?;
    }
    Ok(())
}

/// Measures one case over HTTP and directly on the store, alternating. Prints the costs of the run with the median rate, and returns that rate.
async fn rates(
    backend: &mut dyn BenchBackend,
    printer: &mut Printer,
    options: &Options,
    (case, load): (&'static str, LoadSpec),
) -> Result<f64> {
    let (mut over_http, mut direct) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        printer.progress(&format!("{case} on {}, direct", backend.name()));
        direct.push(measure_direct(backend, load).await?);
        printer.progress(&format!("{case} on {}, over HTTP", backend.name()));
        over_http.push(measure_http(backend, load).await?);
    }
    let rate = |used: &Usage| used.rate(load.requests);
    over_http.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
    let (used, direct) = (over_http[over_http.len() / 2], median(direct));
    let over_http = rate(&used);
    let outcome = BenchResult::default()
        .field("store", backend.name())
        .field("case", case)
        .field("connections", load.connections)
        .field("batch", load.batch)
        .metric("rate", over_http, "requests/s")
        .metric("store_rate", direct, "requests/s")
        .metric("ratio", over_http / direct, "");
    let outcome = used.with_buffers(load.requests, outcome);
    let label = format!("{case}, {} connections", load.connections);
    printer.row(&label, &outcome);
    Ok(over_http)
}

async fn open_load(
    backend: &mut dyn BenchBackend,
    printer: &mut Printer,
    options: &Options,
    rate: f64,
) -> Result<()> {
    printer.progress(&format!("open loop on {}", backend.name()));
    let (server, tenant) = serve(backend).await?;
    let load = LoadSpec {
        requests: (rate * f64::from(options.open_seconds)) as u32,
        batch: 1,
        connections: options.connections,
    };
    let http = HttpTarget::new(&server, tenant);
    callers::run(&http, load.warm_up()).await?;
    let delays = callers::run_open(&http, load, rate).await?;
    server.stop().await;
    let outcome = BenchResult::default()
        .field("store", backend.name())
        .field("case", "open")
        .field("connections", load.connections)
        .metric("rate", rate, "requests/s")
        .metric("p50", percentile(&delays, 0.5), "ms")
        .metric("p90", percentile(&delays, 0.9), "ms")
        .metric("p99", percentile(&delays, 0.99), "ms");
    printer.row("open loop", &outcome);
    Ok(())
}

async fn measure_direct(backend: &mut dyn BenchBackend, load: LoadSpec) -> Result<f64> {
    let tenant = fresh(backend).await?;
    let store = backend.store(false).await?;
    let direct = StoreTarget::new(store, tenant);
    callers::run(&direct, load.warm_up()).await?;
    let begun = Instant::now();
    callers::run(&direct, load).await?;
    Ok(f64::from(load.requests) / begun.elapsed().as_secs_f64())
}

async fn measure_http(backend: &mut dyn BenchBackend, load: LoadSpec) -> Result<Usage> {
    let (server, tenant) = serve(backend).await?;
    let http = HttpTarget::new(&server, tenant);
    callers::run(&http, load.warm_up()).await?;
    let meter = backend.meter().await?;
    let usage = UsageMeter::begin(&*meter).await?;
    callers::run(&http, load).await?;
    let used = usage.end().await?;
    server.stop().await;
    Ok(used)
}

async fn fresh(backend: &mut dyn BenchBackend) -> Result<BenchWorkspace> {
    backend.fill(&Fill::idle(1, NO_LIMIT)).await?;
    let tenants = backend.workspaces().await?;
    tenants
        .into_iter()
        .next()
        .context("the database has no workspace")
}

async fn serve(backend: &mut dyn BenchBackend) -> Result<(BenchServer, BenchWorkspace)> {
    let tenant = fresh(backend).await?;
    let store = backend.store(false).await?;
    Ok((BenchServer::start(store, tenant.workspace).await?, tenant))
}
