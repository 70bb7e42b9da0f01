//! Benchmark of the claim: its options and stores. `measure` measures, `printer` prints.

mod case;
mod measure;
mod printer;

pub(crate) use measure::{OWNER, claim, completed};

use crate::backend::{Autovacuum, StoreChoice};
use crate::report::Format;
use anyhow::{Result, ensure};
use case::Cases;
use clap::Args;
use leasehold_core::limits::CLAIM_MAX_BATCH;
use printer::ClaimPrinter;

/// Options of the benchmark.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Store to measure; starts a temporary PostgreSQL server
    #[arg(long, value_enum, default_value = "both")]
    store: StoreChoice,
    /// Numbers of pending requests
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 100_000, 1_000_000])]
    pending: Vec<u32>,
    /// Numbers of workspaces
    #[arg(long, value_delimiter = ',', default_values_t = [10, 1_000, 100_000])]
    workspaces: Vec<u32>,
    /// Maximum number of requests per claim
    #[arg(long, default_value_t = 100)]
    batch: u32,
    /// Numbers of concurrent claimers
    #[arg(long, value_delimiter = ',', default_values_t = [1, 4])]
    claimers: Vec<u32>,
    /// Requests admitted while another transaction holds an old snapshot (0 skips this case)
    #[arg(long, default_value_t = 50_000)]
    admitted: u32,
    /// Number of older requests that cannot be admitted (0 skips this case)
    #[arg(long, default_value_t = 1_000_000)]
    blocked: u32,
    /// Run small cases on SQLite only (a few seconds, nothing to install)
    #[arg(long, conflicts_with_all = ["store", "pending", "workspaces", "claimers", "admitted", "blocked"])]
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
            self.store = StoreChoice::Sqlite;
            self.pending = vec![1_000, 20_000];
            self.workspaces = vec![10, 1_000];
            self.claimers = vec![1];
            self.admitted = 5_000;
            self.blocked = 20_000;
        }
        ensure!(
            (1..=CLAIM_MAX_BATCH).contains(&self.batch),
            "--batch must be 1 to {CLAIM_MAX_BATCH}"
        );
        let mut counts = self
            .pending
            .iter()
            .chain(&self.workspaces)
            .chain(&self.claimers);
        ensure!(counts.all(|count| *count > 0), "counts must be at least 1");
        Ok(self)
    }
}

/// Runs the chosen measurements and prints results as they arrive.
pub(crate) async fn run(options: Options) -> Result<()> {
    let options = options.validated()?;
    let mut printer = ClaimPrinter::new(Format::chosen(options.json, options.table));
    printer.introduce(&options);
    for mut backend in options.store.backends(Autovacuum::Off)? {
        Cases::new(&mut *backend, &mut printer, &options)
            .run()
            .await?;
    }
    printer.conclude();
    Ok(())
}
