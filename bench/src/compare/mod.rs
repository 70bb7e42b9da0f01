//! The WorkQueue beside other job queues: enqueueing, draining and latency (B1 to B3) on the same server in the same run, by turns.

mod driver;
mod install;
mod peer;

use crate::backend::{BenchBackend, PostgresBackend, Upkeep};
use crate::report::{Format, Outcome, median, percentile};
use crate::sheet::Sheet;
use crate::workqueue::{Delays, Hands, Mode, Run, Way, middle, ours, rate};
use anyhow::{Result, ensure};
use clap::Args;
use install::Installed;
use peer::Peer;

/// What can be asked of the bench.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// What to compare with
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Peer::ALL)]
    peers: Vec<Peer>,
    /// Jobs to enqueue in bulk and to drain
    #[arg(long, default_value_t = 100_000)]
    jobs: u32,
    /// Jobs to enqueue one by one
    #[arg(long, default_value_t = 10_000)]
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
    #[command(flatten)]
    hands: Hands,
    /// How often everything is measured; medians are shown
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Small: a minute or two
    #[arg(long, conflicts_with_all = ["jobs", "singles", "delays", "rounds"])]
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

/// The runs of one job queue.
struct Entry {
    /// None is Leasehold.
    peer: Option<Peer>,
    case: &'static str,
    runs: Vec<Run>,
}

impl Entry {
    fn name(&self) -> &'static str {
        self.peer.map_or("leasehold", Peer::name)
    }
}

/// Measures everything asked for and prints it as it comes.
pub(crate) async fn run(options: Options) -> Result<()> {
    let options = options.settled()?;
    let mut sheet = Sheet::new("compare", Format::chosen(options.json, options.table));
    sheet.progress("npm installs the others");
    let installed = Installed::new(&options.peers).await?;
    let mut backend = PostgresBackend::start(Upkeep::Ordinary)?;
    let singles = options
        .callers
        .iter()
        .map(|&connections| (Way::Singles { connections }, options.singles));
    let bulk = Way::Bulk {
        batch: options.batch,
    };
    for (way, jobs) in singles.chain([(bulk, options.jobs)]) {
        enqueue(&mut backend, &mut sheet, &options, &installed, way, jobs).await?;
    }
    drain(&mut backend, &mut sheet, &options, &installed).await?;
    latency(&mut backend, &mut sheet, &options, &installed).await
}

async fn enqueue(
    backend: &mut dyn BenchBackend,
    sheet: &mut Sheet,
    options: &Options,
    installed: &Installed,
    way: Way,
    jobs: u32,
) -> Result<()> {
    sheet.bench("enqueue");
    sheet.heading(&format!("Jobs enqueued a second, {} (B1)", way.label()));
    let mut entries = entries(&options.peers, &[""]);
    for _ in 0..options.rounds {
        for entry in &mut entries {
            sheet.progress(&format!("{}, {}", way.label(), entry.name()));
            entry.runs.push(match entry.peer {
                None => ours::enqueue(backend, way, jobs).await?,
                Some(peer) => peer.enqueue(installed, backend, way, jobs).await?,
            });
        }
    }
    let fields = |_: &Entry, outcome| way.fields(outcome);
    show(sheet, &entries, Entry::name, fields);
    Ok(())
}

async fn drain(
    backend: &mut dyn BenchBackend,
    sheet: &mut Sheet,
    options: &Options,
    installed: &Installed,
) -> Result<()> {
    sheet.bench("drain");
    sheet.heading(&format!(
        "{} waiting jobs done a second by one worker process (B2)",
        options.jobs
    ));
    let mut entries = entries(&options.peers, &Mode::ALL.map(Mode::name));
    for _ in 0..options.rounds {
        for entry in &mut entries {
            sheet.progress(&format!("draining, {} {}", entry.name(), entry.case));
            let mode = Mode::ALL.into_iter().find(|mode| mode.name() == entry.case);
            entry.runs.push(match (entry.peer, mode) {
                (Some(peer), _) => peer.drain(installed, backend, options.jobs).await?,
                (None, mode) => {
                    let mode = mode.unwrap_or(Mode::Keep);
                    ours::drain(backend, mode, options.jobs, options.hands)
                        .await?
                        .0
                }
            });
        }
    }
    let label = |entry: &Entry| format!("{} {}", entry.name(), entry.case);
    let fields = |entry: &Entry, outcome: Outcome| outcome.field("case", entry.case);
    show(sheet, &entries, label, fields);
    Ok(())
}

/// Leasehold in each of its cases, and the others.
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

/// A line each, and how many times as fast as the others Leasehold is.
fn show<L: AsRef<str>>(
    sheet: &mut Sheet,
    entries: &[Entry],
    label: impl Fn(&Entry) -> L,
    fields: impl Fn(&Entry, Outcome) -> Outcome,
) {
    for entry in entries {
        let about = Outcome::default()
            .field("store", "postgres")
            .field("queue", entry.name());
        let mut outcome = fields(entry, about).metric("rate", rate(&entry.runs), "jobs/s");
        if entry.peer.is_none() {
            for (peer, other) in others(entries) {
                outcome =
                    outcome.metric(peer.ratio_name(), rate(&entry.runs) / rate(&other.runs), "");
            }
        }
        if let Some(run) = middle(&entry.runs) {
            outcome = run.costs(outcome);
        }
        sheet.row(label(entry).as_ref(), &outcome);
    }
}

fn others(entries: &[Entry]) -> impl Iterator<Item = (Peer, &Entry)> {
    entries
        .iter()
        .filter_map(|entry| Some((entry.peer?, entry)))
}

async fn latency(
    backend: &mut dyn BenchBackend,
    sheet: &mut Sheet,
    options: &Options,
    installed: &Installed,
) -> Result<()> {
    sheet.bench("latency");
    sheet.heading(&format!(
        "From the commit of one enqueue to its handler's start, {} times, idle before (B3; ratios of the medians, less is better)",
        options.delays
    ));
    let who: Vec<Option<Peer>> = std::iter::once(None)
        .chain(options.peers.iter().copied().map(Some))
        .collect();
    let mut found: Vec<Vec<Delays>> = vec![Vec::new(); who.len()];
    for _ in 0..options.rounds {
        for (peer, found) in who.iter().zip(&mut found) {
            let name = peer.map_or("leasehold", Peer::name);
            sheet.progress(&format!("timing single jobs, {name}"));
            found.push(match peer {
                None => ours::latency(backend, options.delays, options.hands).await?,
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
    for (peer, rounds) in who.iter().zip(&found) {
        let mut sorted: Vec<&Delays> = rounds.iter().collect();
        sorted.sort_by(|one, other| {
            let of = |delays: &Delays| percentile(&delays.after_commit, 0.5);
            of(one).total_cmp(&of(other))
        });
        let name = peer.map_or("leasehold", Peer::name);
        let outcome = Outcome::default()
            .field("store", "postgres")
            .field("queue", name)
            .field("case", "idle");
        let mut outcome = match sorted.get(sorted.len() / 2) {
            Some(middle) => middle.metrics(outcome),
            None => outcome,
        };
        if peer.is_none() {
            for (other, theirs) in who.iter().zip(&found) {
                if let Some(other) = other {
                    outcome = outcome.metric(other.ratio_name(), p50(rounds) / p50(theirs), "");
                }
            }
        }
        sheet.row(name, &outcome);
    }
    Ok(())
}
