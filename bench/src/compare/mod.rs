//! Compares the WorkQueue with other job queues: enqueue, drain and latency (B1 to B3), alternating on the same server.

mod driver;
mod install;
mod peer;

use crate::backend::{Autovacuum, BenchBackend, PostgresBackend};
use crate::printer::Printer;
use crate::report::{BenchResult, Format, median, percentile};
use crate::workqueue::{
    Delays, EnqueueMode, Retention, Run, WorkerOptions, leasehold, median_run, rate,
};
use anyhow::{Result, ensure};
use clap::Args;
use install::NpmInstall;
use peer::Peer;

/// Options of the benchmark.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Job queues to compare with
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Peer::ALL)]
    peers: Vec<Peer>,
    /// Number of jobs to enqueue in bulk and to drain
    #[arg(long, default_value_t = 100_000)]
    jobs: u32,
    /// Number of jobs to enqueue singly
    #[arg(long, default_value_t = 10_000)]
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
    #[command(flatten)]
    worker: WorkerOptions,
    /// Number of rounds; results are medians
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Run small cases (a minute or two)
    #[arg(long, conflicts_with_all = ["jobs", "singles", "delays", "rounds"])]
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
            self.jobs = 50_000;
            self.singles = 2_000;
            self.delays = 200;
            self.rounds = 1;
        }
        let mut counts = [
            self.jobs,
            self.singles,
            self.batch,
            self.delays,
            self.rounds,
        ]
        .into_iter()
        .chain(self.callers.iter().copied());
        ensure!(counts.all(|count| count > 0), "counts must be at least 1");
        Ok(self)
    }
}

/// The runs of one job queue in one case.
struct Entry {
    /// None for Leasehold.
    peer: Option<Peer>,
    case: &'static str,
    runs: Vec<Run>,
}

impl Entry {
    fn name(&self) -> &'static str {
        self.peer.map_or("leasehold", Peer::name)
    }
}

/// Runs the chosen measurements and prints results as they arrive.
pub(crate) async fn run(options: Options) -> Result<()> {
    let options = options.validated()?;
    let mut printer = Printer::new("compare", Format::chosen(options.json, options.table));
    printer.progress("installing the other queues with npm");
    let installed = NpmInstall::new(&options.peers).await?;
    let mut backend = PostgresBackend::start(Autovacuum::On)?;
    let singles = options
        .callers
        .iter()
        .map(|&connections| (EnqueueMode::Singles { connections }, options.singles));
    let bulk = EnqueueMode::Bulk {
        batch: options.batch,
    };
    for (mode, jobs) in singles.chain([(bulk, options.jobs)]) {
        enqueue(&mut backend, &mut printer, &options, &installed, mode, jobs).await?;
    }
    drain(&mut backend, &mut printer, &options, &installed).await?;
    latency(&mut backend, &mut printer, &options, &installed).await
}

async fn enqueue(
    backend: &mut dyn BenchBackend,
    printer: &mut Printer,
    options: &Options,
    installed: &NpmInstall,
    mode: EnqueueMode,
    jobs: u32,
) -> Result<()> {
    printer.bench("enqueue");
    printer.heading(&format!("Jobs enqueued per second, {} (B1)", mode.label()));
    let mut entries = entries(&options.peers, &[""]);
    for _ in 0..options.rounds {
        for entry in &mut entries {
            printer.progress(&format!("{}, {}", mode.label(), entry.name()));
            entry.runs.push(match entry.peer {
                None => leasehold::enqueue(backend, mode, jobs).await?,
                Some(peer) => peer.enqueue(installed, backend, mode, jobs).await?,
            });
        }
    }
    let fields = |_: &Entry, outcome| mode.fields(outcome);
    print_entries(printer, &entries, Entry::name, fields);
    Ok(())
}

async fn drain(
    backend: &mut dyn BenchBackend,
    printer: &mut Printer,
    options: &Options,
    installed: &NpmInstall,
) -> Result<()> {
    printer.bench("drain");
    printer.heading(&format!(
        "Jobs completed per second by one worker process, backlog of {} (B2)",
        options.jobs
    ));
    let mut entries = entries(&options.peers, &Retention::ALL.map(Retention::name));
    for _ in 0..options.rounds {
        for entry in &mut entries {
            printer.progress(&format!("draining, {} {}", entry.name(), entry.case));
            let mode = Retention::ALL
                .into_iter()
                .find(|mode| mode.name() == entry.case);
            entry.runs.push(match (entry.peer, mode) {
                (Some(peer), _) => peer.drain(installed, backend, options.jobs).await?,
                (None, mode) => {
                    let mode = mode.unwrap_or(Retention::Keep);
                    leasehold::drain(backend, mode, options.jobs, options.worker)
                        .await?
                        .0
                }
            });
        }
    }
    let label = |entry: &Entry| format!("{} {}", entry.name(), entry.case);
    let fields = |entry: &Entry, outcome: BenchResult| outcome.field("case", entry.case);
    print_entries(printer, &entries, label, fields);
    Ok(())
}

/// Returns entries for each case of Leasehold and for the other queues.
fn entries(peers: &[Peer], cases: &[&'static str]) -> Vec<Entry> {
    let entry = |peer, case| Entry {
        peer,
        case,
        runs: Vec::new(),
    };
    let own = cases.iter().map(|&case| entry(None, case));
    own.chain(peers.iter().map(|&peer| entry(Some(peer), peer.keeps())))
        .collect()
}

/// Prints a row for each entry, with the ratios of Leasehold's rate to the others.
fn print_entries<L: AsRef<str>>(
    printer: &mut Printer,
    entries: &[Entry],
    label: impl Fn(&Entry) -> L,
    fields: impl Fn(&Entry, BenchResult) -> BenchResult,
) {
    for entry in entries {
        let about = BenchResult::default()
            .field("store", "postgres")
            .field("queue", entry.name());
        let mut outcome = fields(entry, about).metric("rate", rate(&entry.runs), "jobs/s");
        if entry.peer.is_none() {
            for (peer, other) in others(entries) {
                outcome =
                    outcome.metric(peer.ratio_name(), rate(&entry.runs) / rate(&other.runs), "");
            }
        }
        if let Some(run) = median_run(&entry.runs) {
            outcome = run.costs(outcome);
        }
        printer.row(label(entry).as_ref(), &outcome);
    }
}

fn others(entries: &[Entry]) -> impl Iterator<Item = (Peer, &Entry)> {
    entries
        .iter()
        .filter_map(|entry| Some((entry.peer?, entry)))
}

async fn latency(
    backend: &mut dyn BenchBackend,
    printer: &mut Printer,
    options: &Options,
    installed: &NpmInstall,
) -> Result<()> {
    printer.bench("latency");
    printer.heading(&format!(
        "Latency from the commit of an enqueue to the start of its handler, idle worker, {} jobs (B3; ratios of the medians, lower is better)",
        options.delays
    ));
    let queues: Vec<Option<Peer>> = std::iter::once(None)
        .chain(options.peers.iter().copied().map(Some))
        .collect();
    let mut found: Vec<Vec<Delays>> = vec![Vec::new(); queues.len()];
    for _ in 0..options.rounds {
        for (peer, found) in queues.iter().zip(&mut found) {
            let name = peer.map_or("leasehold", Peer::name);
            printer.progress(&format!("timing single jobs, {name}"));
            found.push(match peer {
                None => leasehold::latency(backend, options.delays, options.worker).await?,
                Some(peer) => peer.latency(installed, backend, options.delays).await?,
            });
        }
    }
    let p50 = |rounds: &[Delays]| {
        let middles = rounds
            .iter()
            .map(|round| percentile(&round.after_commit, 0.5));
        median(middles.collect())
    };
    for (peer, rounds) in queues.iter().zip(&found) {
        let mut sorted: Vec<&Delays> = rounds.iter().collect();
        sorted.sort_by(|one, other| {
            let of = |delays: &Delays| percentile(&delays.after_commit, 0.5);
            of(one).total_cmp(&of(other))
        });
        let name = peer.map_or("leasehold", Peer::name);
        let outcome = BenchResult::default()
            .field("store", "postgres")
            .field("queue", name)
            .field("case", "idle");
        let mut outcome = match sorted.get(sorted.len() / 2) {
            Some(middle) => middle.metrics(outcome),
            None => outcome,
        };
        if peer.is_none() {
            for (other, theirs) in queues.iter().zip(&found) {
                if let Some(other) = other {
                    outcome = outcome.metric(other.ratio_name(), p50(rounds) / p50(theirs), "");
                }
            }
        }
        printer.row(name, &outcome);
    }
    Ok(())
}
