//! Benchmark of many tenants on one store: a noisy neighbour, the cost of limits, the number of workspaces.

mod limits;
mod neighbour;
mod scale;

use crate::backend::{Autovacuum, StoreChoice};
use crate::printer::Printer;
use crate::report::Format;
use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};

/// One part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// A noisy neighbour (B6)
    Neighbour,
    /// The cost of limits (B7)
    Limits,
    /// The number of workspaces (B8)
    Scale,
}

/// Options of the benchmark.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Store to measure; starts a temporary PostgreSQL server
    #[arg(long, value_enum, default_value = "both")]
    store: StoreChoice,
    /// Parts to measure
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Part::Neighbour, Part::Limits, Part::Scale])]
    parts: Vec<Part>,
    /// Number of pending requests in the noisy workspace
    #[arg(long, default_value_t = 20_000)]
    noise: u32,
    /// Number of workspaces of mixed plans (limits)
    #[arg(long, default_value_t = 1_000)]
    workspaces: u32,
    /// Requests per workspace and call (limits, batched)
    #[arg(long, default_value_t = 100)]
    batch: u32,
    /// Requests per workspace when enqueued singly (limits)
    #[arg(long, default_value_t = 20)]
    singles: u32,
    /// Maximum number of requests per claim (limits)
    #[arg(long, default_value_t = 100)]
    claim: u32,
    /// Numbers of workspaces to compare (scale)
    #[arg(long, value_delimiter = ',', default_values_t = [10, 1_000, 100_000])]
    workspace_counts: Vec<u32>,
    /// Number of blocked requests in full workspaces (scale; 0 skips this case)
    #[arg(long, default_value_t = 1_000_000)]
    blocked: u32,
    /// Number of rounds; results are medians
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Run small cases (a minute or two)
    #[arg(long, conflicts_with_all = ["noise", "workspaces", "batch", "singles", "workspace_counts", "blocked", "rounds"])]
    quick: bool,
    /// Show PostgreSQL's most expensive statements
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
            self.noise = 5_000;
            self.workspaces = 200;
            self.batch = 20;
            self.singles = 10;
            self.workspace_counts = vec![10, 1_000];
            self.blocked = 20_000;
            self.rounds = 1;
        }
        let mut counts = [self.workspaces, self.batch, self.singles, self.rounds]
            .into_iter()
            .chain(self.workspace_counts.iter().copied());
        ensure!(counts.all(|count| count > 0), "counts must be at least 1");
        Ok(self)
    }
}

/// Runs the chosen measurements and prints results as they arrive.
pub(crate) async fn run(options: Options) -> Result<()> {
    let options = options.validated()?;
    let mut printer = Printer::new("tenants", Format::chosen(options.json, options.table));
    for mut backend in options.store.backends(Autovacuum::Off)? {
        let backend = &mut *backend;
        for part in &options.parts {
            match part {
                Part::Neighbour => neighbour::run(backend, &mut printer, &options).await?,
                Part::Limits => limits::run(backend, &mut printer, &options).await?,
                Part::Scale => scale::run(backend, &mut printer, &options).await?,
            }
        }
    }
    Ok(())
}
