//! The bench of many tenants on one store: a noisy neighbour, what limits cost, how many workspaces there may be. What is measured is in the modules.

mod crowd;
mod limits;
mod neighbour;

use crate::backend::{Upkeep, Which};
use crate::report::Format;
use crate::sheet::Sheet;
use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};

/// One part of the bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// A noisy neighbour (B6)
    Neighbour,
    /// What limits cost (B7)
    Limits,
    /// How many workspaces there may be (B8)
    Crowd,
}

/// What can be asked of the bench.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// The store; a PostgreSQL server is started for it
    #[arg(long, value_enum, default_value = "both")]
    store: Which,
    /// What to measure
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Part::Neighbour, Part::Limits, Part::Crowd])]
    parts: Vec<Part>,
    /// Requests that wait in the noisy workspace
    #[arg(long, default_value_t = 20_000)]
    noise: u32,
    /// Workspaces of mixed plans whose requests are timed from end to end
    #[arg(long, default_value_t = 1_000)]
    workspaces: u32,
    /// Requests of each of them, in one call
    #[arg(long, default_value_t = 100)]
    batch: u32,
    /// Requests of each of them when enqueued one by one
    #[arg(long, default_value_t = 20)]
    singles: u32,
    /// Requests one claim admits at most, where requests are timed from end to end
    #[arg(long, default_value_t = 100)]
    claim: u32,
    /// Numbers of workspaces to compare
    #[arg(long, value_delimiter = ',', default_values_t = [10, 1_000, 100_000])]
    crowds: Vec<u32>,
    /// Requests that wait in full workspaces beside the others; 0 leaves this out
    #[arg(long, default_value_t = 1_000_000)]
    blocked: u32,
    /// How often everything is measured; medians are shown
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Small: a minute or two
    #[arg(long, conflicts_with_all = ["noise", "workspaces", "batch", "singles", "crowds", "blocked", "rounds"])]
    quick: bool,
    /// Show which statements of PostgreSQL took the time
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
            self.noise = 5_000;
            self.workspaces = 200;
            self.batch = 20;
            self.singles = 10;
            self.crowds = vec![10, 1_000];
            self.blocked = 20_000;
            self.rounds = 1;
        }
        let mut counts = [self.workspaces, self.batch, self.singles, self.rounds]
            .into_iter()
            .chain(self.crowds.iter().copied());
        ensure!(counts.all(|count| count > 0), "counts must be at least 1");
        Ok(self)
    }
}

/// Measures everything asked for and prints it as it comes.
pub(crate) async fn run(options: Options) -> Result<()> {
    let options = options.settled()?;
    let mut sheet = Sheet::new("tenants", Format::chosen(options.json, options.table));
    for mut backend in options.store.backends(Upkeep::None)? {
        let backend = &mut *backend;
        for part in &options.parts {
            match part {
                Part::Neighbour => neighbour::run(backend, &mut sheet, &options).await?,
                Part::Limits => limits::run(backend, &mut sheet, &options).await?,
                Part::Crowd => crowd::run(backend, &mut sheet, &options).await?,
            }
        }
    }
    Ok(())
}
