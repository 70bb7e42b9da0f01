//! Overhead of telemetry: dispatch and jobs without it, with logs, and with logs, scraped metrics and exported traces. The cases alternate,
//! so that all see the same load on the machine.

mod cases;
mod observer;

use crate::backend::{Autovacuum, BenchBackend, StoreChoice};
use crate::printer::Printer;
use crate::report::{BenchResult, Format, median};
use crate::workqueue::WorkerOptions;
use anyhow::{Result, ensure};
use cases::Case;
use clap::Args;
use observer::{LogFile, TelemetryLevel};

/// Options of the benchmark.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Store to measure; starts a temporary PostgreSQL server
    #[arg(long, value_enum, default_value = "both")]
    store: StoreChoice,
    /// Number of requests per turn, dispatched to the instant engine
    #[arg(long, default_value_t = 20_000)]
    requests: u32,
    /// Number of workspaces
    #[arg(long, default_value_t = 1_000)]
    workspaces: u32,
    /// Number of jobs drained per turn
    #[arg(long, default_value_t = 100_000)]
    jobs: u32,
    #[command(flatten)]
    worker: WorkerOptions,
    /// Number of alternating turns
    #[arg(long, default_value_t = 7)]
    turns: u32,
    /// Run small cases (a minute or two)
    #[arg(long, conflicts_with_all = ["requests", "jobs", "turns"])]
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
            self.requests = 5_000;
            self.jobs = 30_000;
            self.turns = 3;
        }
        let counts = [self.requests, self.workspaces, self.jobs, self.turns];
        ensure!(
            counts.iter().all(|count| *count > 0),
            "counts must be at least 1"
        );
        Ok(self)
    }
}

/// Runs the chosen measurements and prints results as they arrive.
pub(crate) async fn run(options: Options) -> Result<()> {
    let options = options.validated()?;
    let mut printer = Printer::new("telemetry", Format::chosen(options.json, options.table));
    let logs = LogFile::begin()?;
    for mut backend in options.store.backends(Autovacuum::Off)? {
        printer.heading(&format!(
            "{}: rates without telemetry, with logs, and with logs, metrics and traces",
            backend.name()
        ));
        for case in Case::ALL {
            measure(&mut *backend, &mut printer, &options, &logs, case).await?;
        }
    }
    Ok(())
}

async fn measure(
    backend: &mut dyn BenchBackend,
    printer: &mut Printer,
    options: &Options,
    logs: &LogFile,
    case: Case,
) -> Result<()> {
    let mut rates = [Vec::new(), Vec::new(), Vec::new()];
    for turn in 0..options.turns {
        printer.progress(&format!(
            "{} on {}, turn {} of {}",
            case.name(),
            backend.name(),
            turn + 1,
            options.turns
        ));
        for (level, rates) in TelemetryLevel::ALL.into_iter().zip(&mut rates) {
            rates.push(case.run(backend, options, logs, level).await?);
        }
    }
    let [off, logs_only, all] = rates;
    let ratio = |rates: &[f64]| {
        let ratios = rates.iter().zip(&off).map(|(rate, off)| rate / off);
        median(ratios.collect())
    };
    let (logs_ratio, all_ratio) = (ratio(&logs_only), ratio(&all));
    let outcome = BenchResult::default()
        .field("store", backend.name())
        .field("case", case.name())
        .metric("off", median(off), case.unit())
        .metric("logs", median(logs_only), case.unit())
        .metric("all", median(all), case.unit())
        .metric("logs_ratio", logs_ratio, "")
        .metric("all_ratio", all_ratio, "");
    printer.row(case.name(), &outcome);
    Ok(())
}
