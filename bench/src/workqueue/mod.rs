//! The bench of the WorkQueue: enqueueing, draining, latency, backlog, a pinned horizon. What is measured is in the modules.

mod backlog;
mod crew;
mod drain;
mod enqueue;
mod horizon;
mod jobs;
mod latency;
mod limit;
mod run;
mod windows;

pub(crate) use crew::Hands;
pub(crate) use drain::Mode;
pub(crate) use enqueue::Way;
pub(crate) use latency::Delays;
pub(crate) use run::{Run, middle, rate};

/// Measurements of Leasehold's own, for a comparison.
pub(crate) mod ours {
    pub(crate) use super::drain::measure as drain;
    pub(crate) use super::enqueue::measure as enqueue;
    pub(crate) use super::latency::{PAUSE, WARM_UPS, measure as latency};
    pub(crate) use super::run::Begun;
}

/// Draining, for whoever looks at it meanwhile.
pub(crate) mod watched {
    pub(crate) use super::drain::{drain, filled};
}

use crate::backend::{BenchBackend, Pin, Upkeep, Which};
use crate::report::Format;
use crate::sheet::Sheet;
use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};

/// One part of the bench. On SQLite they are B11.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Enqueueing
    B1,
    /// Draining
    B2,
    /// Latency
    B3,
    /// Backlog
    B4,
    /// A pinned horizon
    B5,
}

/// What can be asked of the bench.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// The store; a PostgreSQL server is started for it
    #[arg(long, value_enum, default_value = "both")]
    store: Which,
    /// What to measure
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Part::B1, Part::B2, Part::B3, Part::B4, Part::B5])]
    only: Vec<Part>,
    /// Jobs to enqueue and to drain
    #[arg(long, default_value_t = 100_000)]
    jobs: u32,
    /// Jobs to enqueue one by one
    #[arg(long, default_value_t = 100_000)]
    singles: u32,
    /// Connections they come from, one number after the other
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8])]
    callers: Vec<u32>,
    /// Jobs a call when they are enqueued in bulk
    #[arg(long, default_value_t = 10_000)]
    batch: u32,
    /// Jobs whose latency is taken
    #[arg(long, default_value_t = 500)]
    delays: u32,
    /// Numbers of waiting jobs to compare
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 1_000_000])]
    waiting: Vec<u32>,
    /// Jobs at the front that are timed
    #[arg(long, default_value_t = 5_000)]
    front: u32,
    /// Seconds of steady load with a pinned horizon
    #[arg(long, default_value_t = 300)]
    b5_seconds: u64,
    /// Jobs a second then; a third of what is drained unless told
    #[arg(long)]
    b5_rate: Option<f64>,
    /// Also with a transaction that has written and is left open, where the store allows it
    #[arg(long)]
    b5_writer: bool,
    #[command(flatten)]
    hands: Hands,
    /// How often everything but the pinned horizon is measured; medians are shown
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Small: a minute or two
    #[arg(long, conflicts_with_all = ["jobs", "singles", "delays", "waiting", "b5_seconds", "rounds"])]
    quick: bool,
    /// Show which statements of PostgreSQL took the time of draining
    #[arg(long)]
    profile: bool,
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
        ensure!(self.b5_seconds >= 3, "three windows need three seconds");
        Ok(self)
    }

    /// Ways to enqueue, and how many jobs.
    fn ways(&self) -> Vec<(Way, u32)> {
        let singles = self
            .callers
            .iter()
            .map(|&connections| (Way::Singles { connections }, self.singles));
        let bulk = Way::Bulk { batch: self.batch };
        singles.chain([(bulk, self.jobs)]).collect()
    }
}

/// Measures everything asked for and prints it as it comes.
pub(crate) async fn run(options: Options) -> Result<()> {
    let options = options.settled()?;
    let mut sheet = Sheet::new("workqueue", Format::chosen(options.json, options.table));
    for mut backend in options.store.backends(Upkeep::Ordinary)? {
        let backend = &mut *backend;
        let mut drained = None;
        for part in &options.only {
            match part {
                Part::B1 => enqueue::run(backend, &mut sheet, &options).await?,
                Part::B2 => drained = Some(drain::run(backend, &mut sheet, &options).await?),
                Part::B3 => latency::run(backend, &mut sheet, &options).await?,
                Part::B4 => backlog::run(backend, &mut sheet, &options).await?,
                Part::B5 => pinned(backend, &mut sheet, &options, drained).await?,
            }
        }
    }
    Ok(())
}

async fn pinned(
    backend: &mut dyn BenchBackend,
    sheet: &mut Sheet,
    options: &Options,
    drained: Option<f64>,
) -> Result<()> {
    let rate = match (options.b5_rate, drained) {
        (Some(rate), _) => rate,
        (None, Some(drained)) => drained / 3.0,
        (None, None) => {
            sheet.progress("draining first, to know what a third of it is");
            let (run, _) = drain::measure(backend, Mode::Keep, options.jobs, options.hands).await?;
            run.rate() / 3.0
        }
    };
    horizon::run(backend, sheet, options, Pin::Reader, rate).await?;
    // In one process one who writes keeps all others from it.
    if options.b5_writer && backend.address().is_some() {
        horizon::run(backend, sheet, options, Pin::Writer, rate).await?;
    }
    Ok(())
}
