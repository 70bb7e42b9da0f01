//! Prints results as they arrive: JSON lines, or tables with one column for each metric. Independent of what was measured.

use crate::backend::StatementCost;
use crate::report::{BenchResult, Format, Metric, grouped};
use std::io::{IsTerminal, Write};

const LABEL: usize = 34;
const CELL: usize = 14;

/// Prints results and progress.
pub(crate) struct Printer {
    bench: &'static str,
    format: Format,
    /// Columns of the current table.
    columns: Vec<String>,
    /// Whether a progress line is on the terminal and must be cleared first.
    dirty: bool,
}

impl Printer {
    pub(crate) fn new(bench: &'static str, format: Format) -> Self {
        Self {
            bench,
            format,
            columns: Vec::new(),
            dirty: false,
        }
    }

    /// Sets the `bench` field of the next results.
    pub(crate) fn bench(&mut self, bench: &'static str) {
        self.bench = bench;
    }

    /// Begins a table with this title.
    pub(crate) fn heading(&mut self, title: &str) {
        self.columns.clear();
        if self.format == Format::Table {
            self.clear();
            println!("\n{title}\n");
        }
    }

    /// Prints one result. In a table the label identifies it, in JSON its fields do.
    pub(crate) fn row(&mut self, label: &str, outcome: &BenchResult) {
        self.clear();
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
            .map(|(metric, name)| {
                format!(
                    "{:>width$}",
                    format_value(metric.value),
                    width = width(name)
                )
            })
            .collect();
        println!("  {label:<LABEL$}{cells}");
    }

    /// Prints the most expensive statements below a table, with their cost for each request.
    pub(crate) fn statements(&mut self, costs: &[StatementCost], requests: u32) {
        if self.format == Format::Json {
            return;
        }
        self.clear();
        let each = f64::from(requests);
        for cost in costs {
            let text: String = cost.text.chars().take(60).collect();
            println!(
                "{:>9} calls {:>8.2} ms avg {:>8.2} ms min {:>7.1} µs {:>6.1} buffers {:>6} WAL bytes per request  {text}",
                grouped(cost.calls),
                cost.milliseconds / cost.calls,
                cost.best,
                cost.milliseconds * 1_000.0 / each,
                cost.touched / each,
                grouped(cost.log_bytes / each),
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

fn column(metric: &Metric) -> String {
    match metric.unit.as_str() {
        "" => metric.name.to_owned(),
        "requests/s" | "jobs/s" => format!("{}/s", metric.name),
        unit if unit.ends_with("/request") || unit.ends_with("/job") => metric.name.to_owned(),
        unit => format!("{} {unit}", metric.name),
    }
}

/// Returns the column's width: its heading and a gap.
fn width(name: &str) -> usize {
    CELL.max(name.chars().count() + 2)
}

fn format_value(value: f64) -> String {
    if value.abs() >= 100.0 {
        grouped(value)
    } else if value != 0.0 && value.abs() < 0.1 {
        format!("{value:.4}")
    } else {
        format!("{value:.2}")
    }
}
