//! Benchmark of the WorkQueue: enqueue, drain, latency, backlog, a pinned horizon.

mod backlog;
mod drain;
mod enqueue;
mod horizon;
mod jobs;
mod latency;
mod limit;
mod run;
mod windows;
mod worker;

pub(crate) use drain::Retention;
pub(crate) use enqueue::EnqueueMode;
pub(crate) use latency::Delays;
pub(crate) use run::{Run, median_run, rate};
pub(crate) use worker::WorkerOptions;

/// Leasehold's measurements, for the comparison.
pub(crate) mod leasehold {
    pub(crate) use super::drain::measure as drain;
    pub(crate) use super::enqueue::measure as enqueue;
    pub(crate) use super::latency::{PAUSE, WARM_UPS, measure as latency};
    pub(crate) use super::run::RunMeter;
}

/// Draining, for the telemetry benchmark.
pub(crate) mod draining {
    pub(crate) use super::drain::{drain, filled_store};
}

use crate::backend::{Autovacuum, BenchBackend, HorizonPin, StoreChoice};
use crate::printer::Printer;
use crate::report::Format;
use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};

/// One part of the benchmark. On SQLite the parts are B11.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Enqueue
    B1,
    /// Drain
    B2,
    /// Latency
    B3,
    /// Backlog
    B4,
    /// A pinned horizon
    B5,
}

/// Options of the benchmark.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Store to measure; starts a temporary PostgreSQL server
    #[arg(long, value_enum, default_value = "both")]
    store: StoreChoice,
    /// Parts to measure
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Part::B1, Part::B2, Part::B3, Part::B4, Part::B5])]
    only: Vec<Part>,
    /// Number of jobs to enqueue in bulk and to drain
    #[arg(long, default_value_t = 100_000)]
    jobs: u32,
    /// Number of jobs to enqueue singly
    #[arg(long, default_value_t = 100_000)]
    singles: u32,
    /// Numbers of connections for single enqueues
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8])]
    callers: Vec<u32>,
    /// Jobs per call when enqueued in bulk
    #[arg(long, default_value_t = 10_000)]
    batch: u32,
    /// Number of jobs whose latency is measured
    #[arg(long, default_value_t = 500)]
    delays: u32,
    /// Numbers of queued jobs to compare
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 1_000_000])]
    waiting: Vec<u32>,
    /// Number of jobs at the front that are timed
    #[arg(long, default_value_t = 5_000)]
    front: u32,
    /// Duration of the load with a pinned horizon, in seconds
    #[arg(long, default_value_t = 300)]
    b5_seconds: u64,
    /// Jobs per second of that load [default: a third of the drain rate]
    #[arg(long)]
    b5_rate: Option<f64>,
    /// Also pin the horizon with an open write transaction (PostgreSQL only)
    #[arg(long)]
    b5_writer: bool,
    #[command(flatten)]
    worker: WorkerOptions,
    /// Number of rounds, except for the pinned horizon; results are medians
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Run small cases (a minute or two)
    #[arg(long, conflicts_with_all = ["jobs", "singles", "delays", "waiting", "b5_seconds", "rounds"])]
    quick: bool,
    /// Show PostgreSQL's most expensive statements while draining
    #[arg(long)]
    profile: bool,
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
            self.jobs = 50_000;
            self.singles = 5_000;
            self.delays = 200;
            self.waiting = vec![1_000, 100_000];
            self.b5_seconds = 15;
            self.rounds = 1;
        }
        let mut counts = [self.jobs, self.singles, self.batch, self.front, self.rounds]
            .into_iter()
            .chain(self.callers.iter().copied());
        ensure!(counts.all(|count| count > 0), "counts must be at least 1");
        ensure!(self.b5_seconds >= 3, "--b5-seconds must be at least 3");
        Ok(self)
    }

    /// Returns the enqueue modes with their numbers of jobs.
    fn modes(&self) -> Vec<(EnqueueMode, u32)> {
        let singles = self
            .callers
            .iter()
            .map(|&connections| (EnqueueMode::Singles { connections }, self.singles));
        let bulk = EnqueueMode::Bulk { batch: self.batch };
        singles.chain([(bulk, self.jobs)]).collect()
    }
}

/// Runs the chosen measurements and prints results as they arrive.
pub(crate) async fn run(options: Options) -> Result<()> {
    let options = options.validated()?;
    let mut printer = Printer::new("workqueue", Format::chosen(options.json, options.table));
    for mut backend in options.store.backends(Autovacuum::On)? {
        let backend = &mut *backend;
        let mut drained = None;
        for part in &options.only {
            match part {
                Part::B1 => enqueue::run(backend, &mut printer, &options).await?,
                Part::B2 => drained = Some(drain::run(backend, &mut printer, &options).await?),
                Part::B3 => latency::run(backend, &mut printer, &options).await?,
                Part::B4 => backlog::run(backend, &mut printer, &options).await?,
                Part::B5 => pinned(backend, &mut printer, &options, drained).await?,
            }
        }
    }
    Ok(())
}

async fn pinned(
    backend: &mut dyn BenchBackend,
    printer: &mut Printer,
    options: &Options,
    drained: Option<f64>,
) -> Result<()> {
    let rate = match (options.b5_rate, drained) {
        (Some(rate), _) => rate,
        (None, Some(drained)) => drained / 3.0,
        (None, None) => {
            printer.progress("measuring the drain rate first");
            let (run, _) =
                drain::measure(backend, Retention::Keep, options.jobs, options.worker).await?;
            run.rate() / 3.0
        }
    };
    horizon::run(backend, printer, options, HorizonPin::Reader, rate).await?;
    // On SQLite an open write transaction would block all other writers.
    if options.b5_writer && backend.address().is_some() {
        horizon::run(backend, printer, options, HorizonPin::Writer, rate).await?;
    }
    Ok(())
}
