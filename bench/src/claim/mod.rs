//! The claim's bench: which cases, on which stores. How one is measured is in `measure`, how it is shown in `show`.

mod case;
mod measure;
mod show;

pub(crate) use measure::{OWNER, claim, completed};

use crate::backend::{Upkeep, Which};
use crate::report::Format;
use anyhow::{Result, ensure};
use case::Cases;
use clap::Args;
use leasehold_core::limits::CLAIM_MAX_BATCH;
use show::Show;

/// What can be asked of the bench.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// The store; a PostgreSQL server is started for it
    #[arg(long, value_enum, default_value = "both")]
    store: Which,
    /// Requests that wait
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 100_000, 1_000_000])]
    pending: Vec<u32>,
    /// Workspaces they wait in
    #[arg(long, value_delimiter = ',', default_values_t = [10, 1_000, 100_000])]
    workspaces: Vec<u32>,
    /// Requests one claim admits at most
    #[arg(long, default_value_t = 100)]
    batch: u32,
    /// Claimers at once
    #[arg(long, value_delimiter = ',', default_values_t = [1, 4])]
    claimers: Vec<u32>,
    /// Requests admitted while another transaction holds on to what it saw before; 0 leaves this out
    #[arg(long, default_value_t = 50_000)]
    admitted: u32,
    /// Requests that cannot be admitted, in the way of those that can; 0 leaves this out
    #[arg(long, default_value_t = 1_000_000)]
    in_the_way: u32,
    /// SQLite only and small: a few seconds, and nothing needs to be installed
    #[arg(long, conflicts_with_all = ["store", "pending", "workspaces", "claimers", "admitted", "in_the_way"])]
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
            self.store = Which::Sqlite;
            self.pending = vec![1_000, 20_000];
            self.workspaces = vec![10, 1_000];
            self.claimers = vec![1];
            self.admitted = 5_000;
            self.in_the_way = 20_000;
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

/// Measures everything asked for and prints it as it comes.
pub(crate) async fn run(options: Options) -> Result<()> {
    let options = options.settled()?;
    let mut show = Show::new(Format::chosen(options.json, options.table));
    show.introduce(&options);
    for mut backend in options.store.backends(Upkeep::None)? {
        Cases::new(&mut *backend, &mut show, &options).run().await?;
    }
    show.conclude();
    Ok(())
}
