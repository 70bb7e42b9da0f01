//! How the claim's results look: JSON lines, or tables that explain themselves. Measures nothing.

use super::Options;
use super::case::MEASURED_AT_MOST;
use super::measure::Measured;
use crate::backend::{BenchBackend, Obstacle};
use crate::report::{Format, Outcome, grouped};
use std::io::{IsTerminal, Write};

const WIDTH: usize = 76;

/// What is varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Backlog,
    After,
    InTheWay,
}

/// One case and what was measured in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) kind: Kind,
    pub(crate) pending: u32,
    pub(crate) workspaces: u32,
    pub(crate) claimers: u32,
    /// Whether each batch was finished before the next.
    pub(crate) finishing: Option<bool>,
    /// Requests admitted before, under the open snapshot.
    pub(crate) admitted: u32,
    pub(crate) obstacle: Option<(Obstacle, u32)>,
    pub(crate) measured: Measured,
    /// The case it is compared with.
    pub(crate) base: Option<Measured>,
}

impl Case {
    pub(crate) fn new(kind: Kind, pending: u32, workspaces: u32, measured: Measured) -> Self {
        Self {
            kind,
            pending,
            workspaces,
            claimers: 1,
            finishing: None,
            admitted: 0,
            obstacle: None,
            measured,
            base: None,
        }
    }

    fn outcome(&self, backend: &dyn BenchBackend) -> Outcome {
        let mut outcome = Outcome::default()
            .field("store", backend.name())
            .field("case", self.kind.name())
            .field("pending", self.pending)
            .field("workspaces", self.workspaces)
            .field("claimers", self.claimers);
        if let Some(finishing) = self.finishing {
            outcome = outcome
                .field("finishing", finishing)
                .field("admitted", self.admitted);
        }
        if self.kind == Kind::InTheWay {
            let (what, count) = self
                .obstacle
                .map_or(("nothing", 0), |(what, count)| (what.name(), count));
            outcome = outcome.field("obstacle", what).field("in_the_way", count);
        }
        let unit = format!("{}/request", backend.unit());
        outcome = outcome
            .metric("rate", self.measured.rate, "requests/s")
            .metric("buffers", self.measured.cost, &unit);
        match self.base {
            Some(base) => outcome.metric("ratio", self.measured.cost / base.cost, &unit),
            None => outcome,
        }
    }

    /// What stands in the first column, where the case is told from its neighbours.
    fn label(&self) -> String {
        let pending = grouped(f64::from(self.pending));
        match self.kind {
            Kind::Backlog => pending,
            Kind::After => match (self.admitted, self.finishing) {
                (0, _) => "at first".to_owned(),
                (n, Some(true)) => format!("after {} came and went", grouped(f64::from(n))),
                (n, _) => format!("after {} came and stayed", grouped(f64::from(n))),
            },
            Kind::InTheWay => match self.obstacle {
                None => "nothing".to_owned(),
                Some((what, count)) => {
                    let count = grouped(f64::from(count));
                    format!("{count} {}", what.name().replace('_', " "))
                }
            },
        }
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Backlog => "backlog",
            Self::After => "after",
            Self::InTheWay => "in_the_way",
        }
    }

    /// What the table shows, and the name of its first column.
    fn headings(self) -> (&'static str, &'static str) {
        match self {
            Self::Backlog => (
                "How much waits, and in how many workspaces",
                "requests waiting",
            ),
            Self::After => (
                "Claims while a long report holds the database's past open",
                "when",
            ),
            Self::InTheWay => (
                "Requests that wait but cannot be admitted are passed by",
                "in the way",
            ),
        }
    }
}

/// Prints results as they come.
pub(crate) struct Show {
    format: Format,
    /// Whether progress stands on the terminal and must be wiped away first.
    dirty: bool,
    /// The store whose tables are being printed.
    backend: Option<&'static str>,
    unit: &'static str,
}

impl Show {
    pub(crate) fn new(format: Format) -> Self {
        Self {
            format,
            dirty: false,
            backend: None,
            unit: "",
        }
    }

    pub(crate) fn introduce(&self, options: &Options) {
        if self.format == Format::Table {
            println!(
                "Leasehold admits requests with a claim: one transaction that goes around the\n\
                 workspaces in turn, takes what each has room for, and leaves the rest waiting.\n\n\
                 For every line below a store was filled with requests; then up to {} of them\n\
                 were admitted, {} at a time.",
                grouped(f64::from(MEASURED_AT_MOST)),
                options.batch
            );
        }
    }

    pub(crate) fn heading(&mut self, backend: &dyn BenchBackend, kind: Kind) {
        if self.format == Format::Json {
            return;
        }
        self.wipe();
        if self.backend != Some(backend.name()) {
            self.backend = Some(backend.name());
            self.unit = backend.unit();
            println!("\n{}\n{}", backend.title(), "=".repeat(WIDTH));
        }
        let (title, first) = kind.headings();
        println!("\n{title}\n");
        println!(
            "  {first:<27}{:>11}{:>10}{:>12}{:>14}",
            "workspaces",
            "claimers",
            "admitted/s",
            format!("{} each", self.unit)
        );
    }

    pub(crate) fn case(&mut self, backend: &dyn BenchBackend, case: &Case) {
        self.wipe();
        if self.format == Format::Json {
            for line in case.outcome(backend).lines("claim") {
                println!("{line}");
            }
            return;
        }
        println!(
            "  {:<27}{:>11}{:>10}{:>12}{:>14}",
            case.label(),
            grouped(f64::from(case.workspaces)),
            case.claimers,
            grouped(case.measured.rate),
            grouped(case.measured.cost)
        );
    }

    pub(crate) fn conclude(&mut self) {
        self.wipe();
        if self.format == Format::Table {
            println!(
                "\nThe last column is what one admission costs the database, whatever machine it\n\
                 runs on: pages that SQLite reads with next to no cache, buffers that PostgreSQL\n\
                 touches. What matters is that it stays about the same down a table: an index\n\
                 grows a level deeper now and then. The rate is this machine's."
            );
        }
    }

    /// Says on standard error what is being done, on one line that the next result wipes away.
    pub(crate) fn progress(&mut self, doing: &str) {
        if std::io::stderr().is_terminal() {
            self.wipe();
            eprint!("  {doing} …");
            // Progress that cannot be shown is no reason to stop.
            let _ = std::io::stderr().flush();
            self.dirty = true;
        } else {
            eprintln!("{doing}");
        }
    }

    fn wipe(&mut self) {
        if std::mem::take(&mut self.dirty) {
            eprint!("\r\x1b[2K");
        }
    }
}
