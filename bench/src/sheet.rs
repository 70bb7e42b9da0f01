//! Prints results of any shape as they come: JSON lines, or tables whose columns are the metrics. Knows nothing of what was measured.

use crate::backend::StatementCost;
use crate::report::{Format, Metric, Outcome, grouped};
use std::io::{IsTerminal, Write};

const LABEL: usize = 34;
const CELL: usize = 14;

/// Where results go.
pub(crate) struct Sheet {
    bench: &'static str,
    format: Format,
    /// The columns of the table that is being printed.
    columns: Vec<String>,
    /// Whether progress stands on the terminal and must be wiped away first.
    dirty: bool,
}

impl Sheet {
    pub(crate) fn new(bench: &'static str, format: Format) -> Self {
        Self {
            bench,
            format,
            columns: Vec::new(),
            dirty: false,
        }
    }

    /// What the next results are of, as their lines say.
    pub(crate) fn bench(&mut self, bench: &'static str) {
        self.bench = bench;
    }

    /// Says what the next table shows.
    pub(crate) fn heading(&mut self, title: &str) {
        self.columns.clear();
        if self.format == Format::Table {
            self.wipe();
            println!("\n{title}\n");
        }
    }

    /// One result; the label tells it from others in a table, as its fields do in JSON.
    pub(crate) fn row(&mut self, label: &str, outcome: &Outcome) {
        self.wipe();
        if self.format == Format::Json {
            for line in outcome.lines(self.bench) {
                println!("{line}");
            }
            return;
        }
        let columns: Vec<String> = outcome.metrics().iter().map(column).collect();
        if self.columns != columns {
            let heads: String = columns
                .iter()
                .map(|name| format!("{name:>width$}", width = width(name)))
                .collect();
            println!("  {:<LABEL$}{heads}", "");
            self.columns = columns;
        }
        let cells: String = outcome
            .metrics()
            .iter()
            .zip(&self.columns)
            .map(|(metric, name)| format!("{:>width$}", shown(metric.value), width = width(name)))
            .collect();
        println!("  {label:<LABEL$}{cells}");
    }

    /// Which statements took the time of `requests`, under a table.
    pub(crate) fn statements(&mut self, costs: &[StatementCost], requests: u32) {
        if self.format == Format::Json {
            return;
        }
        self.wipe();
        let each = f64::from(requests);
        for cost in costs {
            let text: String = cost.text.chars().take(60).collect();
            println!(
                "{:>9} calls {:>8.2} ms {:>8.2} at best {:>7.1} µs {:>6.1} buffers {:>6} WAL bytes a request  {text}",
                grouped(cost.calls),
                cost.milliseconds / cost.calls,
                cost.best,
                cost.milliseconds * 1_000.0 / each,
                cost.touched / each,
                grouped(cost.log_bytes / each),
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

fn column(metric: &Metric) -> String {
    match metric.unit.as_str() {
        "" => metric.name.to_owned(),
        "requests/s" | "jobs/s" => format!("{}/s", metric.name),
        unit if unit.ends_with("/request") || unit.ends_with("/job") => metric.name.to_owned(),
        unit => format!("{} {unit}", metric.name),
    }
}

/// Wide enough for its head and a gap.
fn width(name: &str) -> usize {
    CELL.max(name.chars().count() + 2)
}

fn shown(value: f64) -> String {
    if value.abs() >= 100.0 {
        grouped(value)
    } else if value != 0.0 && value.abs() < 0.1 {
        format!("{value:.4}")
    } else {
        format!("{value:.2}")
    }
}
