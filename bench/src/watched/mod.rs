//! What it costs to be watched: dispatch and jobs with nobody looking, and with logs written, metrics scraped and traces exported. In turns,
//! so that both meet the same weather. What is measured is in the modules.

mod cases;
mod eyes;

use crate::backend::{BenchBackend, Upkeep, Which};
use crate::report::{Format, Outcome, median};
use crate::sheet::Sheet;
use crate::workqueue::Hands;
use anyhow::{Result, ensure};
use cases::Case;
use clap::Args;
use eyes::{Eyes, Logs};

/// What can be asked of the bench.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// The store; a PostgreSQL server is started for it
    #[arg(long, value_enum, default_value = "both")]
    store: Which,
    /// Requests dispatched in one turn, to an engine that answers at once
    #[arg(long, default_value_t = 20_000)]
    requests: u32,
    /// Workspaces they wait in
    #[arg(long, default_value_t = 1_000)]
    workspaces: u32,
    /// Jobs drained in one turn
    #[arg(long, default_value_t = 100_000)]
    jobs: u32,
    #[command(flatten)]
    hands: Hands,
    /// How often both take turns
    #[arg(long, default_value_t = 7)]
    turns: u32,
    /// Small: a minute or two
    #[arg(long, conflicts_with_all = ["requests", "jobs", "turns"])]
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

/// Measures everything asked for and prints it as it comes.
pub(crate) async fn run(options: Options) -> Result<()> {
    let options = options.settled()?;
    let mut sheet = Sheet::new("watched", Format::chosen(options.json, options.table));
    let logs = Logs::begin()?;
    for mut backend in options.store.backends(Upkeep::None)? {
        sheet.heading(&format!(
            "{}: rates with nobody looking, with logs, and with logs, metrics and traces",
            backend.name()
        ));
        for case in Case::ALL {
            measure(&mut *backend, &mut sheet, &options, &logs, case).await?;
        }
    }
    Ok(())
}

async fn measure(
    backend: &mut dyn BenchBackend,
    sheet: &mut Sheet,
    options: &Options,
    logs: &Logs,
    case: Case,
) -> Result<()> {
    let mut rates = [Vec::new(), Vec::new(), Vec::new()];
    for turn in 0..options.turns {
        sheet.progress(&format!(
            "{} on {}, turn {} of {}",
            case.name(),
            backend.name(),
            turn + 1,
            options.turns
        ));
        for (eyes, rates) in Eyes::ALL.into_iter().zip(&mut rates) {
            rates.push(case.run(backend, options, logs, eyes).await?);
        }
    }
    let [nobody, logged, watched] = rates;
    let ratio = |rates: &[f64]| {
        let ratios = rates.iter().zip(&nobody).map(|(rate, alone)| rate / alone);
        median(ratios.collect())
    };
    let (of_logged, of_watched) = (ratio(&logged), ratio(&watched));
    let outcome = Outcome::default()
        .field("store", backend.name())
        .field("case", case.name())
        .metric("nobody", median(nobody), case.unit())
        .metric("logged", median(logged), case.unit())
        .metric("watched", median(watched), case.unit())
        .metric("logged_ratio", of_logged, "")
        .metric("watched_ratio", of_watched, "");
    sheet.row(case.name(), &outcome);
    Ok(())
}
