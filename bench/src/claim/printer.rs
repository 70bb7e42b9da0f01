//! Prints the claim's results: JSON lines or tables. Measures nothing.

use super::Options;
use super::case::MAX_MEASURED;
use super::measure::ClaimMeasurement;
use crate::backend::{BenchBackend, BlockReason};
use crate::report::{BenchResult, Format, grouped};
use std::io::{IsTerminal, Write};

const WIDTH: usize = 76;

/// What a case varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Backlog,
    OldSnapshot,
    Blocked,
}

/// One case with its result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) kind: Kind,
    pub(crate) pending: u32,
    pub(crate) workspaces: u32,
    pub(crate) claimers: u32,
    /// Whether each batch was finished before the next.
    pub(crate) finishing: Option<bool>,
    /// Requests admitted before, while the snapshot is open.
    pub(crate) admitted: u32,
    pub(crate) reason: Option<(BlockReason, u32)>,
    pub(crate) measured: ClaimMeasurement,
    /// The result it is compared with.
    pub(crate) base: Option<ClaimMeasurement>,
}

impl Case {
    pub(crate) fn new(
        kind: Kind,
        pending: u32,
        workspaces: u32,
        measured: ClaimMeasurement,
    ) -> Self {
        Self {
            kind,
            pending,
            workspaces,
            claimers: 1,
            finishing: None,
            admitted: 0,
            reason: None,
            measured,
            base: None,
        }
    }

    fn outcome(&self, backend: &dyn BenchBackend) -> BenchResult {
        let mut outcome = BenchResult::default()
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
        if self.kind == Kind::Blocked {
            let (what, count) = self
                .reason
                .map_or(("none", 0), |(reason, count)| (reason.name(), count));
            outcome = outcome.field("reason", what).field("blocked", count);
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

    /// Returns the text of the first column.
    fn label(&self) -> String {
        let pending = grouped(f64::from(self.pending));
        match self.kind {
            Kind::Backlog => pending,
            Kind::OldSnapshot => match (self.admitted, self.finishing) {
                (0, _) => "before".to_owned(),
                (n, Some(true)) => format!("{} finished", grouped(f64::from(n))),
                (n, _) => format!("{} running", grouped(f64::from(n))),
            },
            Kind::Blocked => match self.reason {
                None => "none".to_owned(),
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
            Self::OldSnapshot => "old_snapshot",
            Self::Blocked => "blocked",
        }
    }

    /// Returns the table's title and the heading of its first column.
    fn headings(self) -> (&'static str, &'static str) {
        match self {
            Self::Backlog => (
                "Claims by backlog and number of workspaces",
                "pending requests",
            ),
            Self::OldSnapshot => (
                "Claims while another transaction holds an old snapshot",
                "state",
            ),
            Self::Blocked => (
                "Claims behind older requests that cannot be admitted",
                "older blocked requests",
            ),
        }
    }
}

/// Prints results as they arrive.
pub(crate) struct ClaimPrinter {
    format: Format,
    /// Whether a progress line is on the terminal and must be cleared first.
    dirty: bool,
    /// The store of the current tables.
    backend: Option<&'static str>,
    unit: &'static str,
}

impl ClaimPrinter {
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
                "A claim admits requests in one transaction: it visits the workspaces in turn and\n\
                 takes as many requests of each as it has free slots.\n\n\
                 For each line below a store was filled with requests; then up to {} of them\n\
                 were admitted, {} per claim.",
                grouped(f64::from(MAX_MEASURED)),
                options.batch
            );
        }
    }

    pub(crate) fn heading(&mut self, backend: &dyn BenchBackend, kind: Kind) {
        if self.format == Format::Json {
            return;
        }
        self.clear();
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
            format!("{}/request", self.unit)
        );
    }

    pub(crate) fn case(&mut self, backend: &dyn BenchBackend, case: &Case) {
        self.clear();
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
        self.clear();
        if self.format == Format::Table {
            println!(
                "\nThe last column is the cost of one admission in the database, independent of the\n\
                 machine: pages that SQLite reads with a tiny cache, buffers that PostgreSQL\n\
                 touches. It should stay about the same within a table, except where an index\n\
                 gains a level. The rate depends on this machine."
            );
        }
    }

    /// Prints progress to standard error, on a line that the next result overwrites.
    pub(crate) fn progress(&mut self, text: &str) {
        if std::io::stderr().is_terminal() {
            self.clear();
            eprint!("  {text} …");
            // A failed flush only affects the progress display.
            let _ = std::io::stderr().flush();
            self.dirty = true;
        } else {
            eprintln!("{text}");
        }
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.dirty) {
            eprint!("\r\x1b[2K");
        }
    }
}
