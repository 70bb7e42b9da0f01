//! What the system says of this process, under the names that every program for Prometheus uses. Only Linux tells; elsewhere nothing is shown.

use super::book::{Book, Define, plain};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use std::fs::{read_dir, read_to_string};

const CPU: Define = plain(
    "process_cpu_seconds_total",
    "Processor time that the process has used",
);
const MEMORY: Define = plain(
    "process_resident_memory_bytes",
    "Memory of the process that is in RAM",
);
const OPEN_FILES: Define = plain(
    "process_open_fds",
    "Files and sockets that the process has open",
);
const MAX_FILES: Define = plain(
    "process_max_fds",
    "Files and sockets that the process may have open",
);
const STARTED: Define = plain(
    "process_start_time_seconds",
    "When the process was started, in seconds since 1970",
);

/// What the kernel counts time in, for programs: a hundredth of a second on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// Puts the process and its version into the book.
pub(super) fn define(book: &mut Book) {
    book.section("Process");
    for gauge in [&MEMORY, &OPEN_FILES, &MAX_FILES, &STARTED] {
        book.describe(gauge, "gauge");
    }
    book.describe(&CPU, "counter");
    book.registry.register_collector(Box::new(Process));
    let build = Define {
        name: "leasehold_build_info",
        help: "The program's version; always 1",
        labels: &["version"],
    };
    book.describe(&build, "gauge");
    let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
    book.registry
        .register("leasehold_build", build.help, version);
}

#[derive(Debug)]
struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        for (define, value) in [
            (&MEMORY, memory()),
            (&OPEN_FILES, open_files()),
            (&MAX_FILES, max_files()),
            (&STARTED, started()),
        ] {
            if let Some(value) = value {
                let kind = MetricType::Gauge;
                let help = format!("{}.", define.help);
                let shown = encoder.encode_descriptor(define.name, &help, None, kind)?;
                ConstGauge::new(value).encode(shown)?;
            }
        }
        if let Some(value) = cpu() {
            let (name, kind) = (CPU.name.trim_end_matches("_total"), MetricType::Counter);
            let help = format!("{}.", CPU.help);
            let shown = encoder.encode_descriptor(name, &help, None, kind)?;
            ConstCounter::new(value).encode(shown)?;
        }
        Ok(())
    }
}

/// The fields of a process's line of numbers, from the third on: the second is its name, which may hold anything.
fn stat() -> Option<Vec<f64>> {
    let text = read_to_string("/proc/self/stat").ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    let fields = rest.split_whitespace();
    Some(fields.map(|field| field.parse().unwrap_or(0.0)).collect())
}

fn cpu() -> Option<f64> {
    let stat = stat()?;
    Some((stat.get(11)? + stat.get(12)?) / TICKS_PER_SECOND)
}

fn started() -> Option<f64> {
    let since_boot = stat()?.get(19)? / TICKS_PER_SECOND;
    let booted = number_after(&read_to_string("/proc/stat").ok()?, "btime")?;
    Some(booted + since_boot)
}

fn memory() -> Option<f64> {
    let status = read_to_string("/proc/self/status").ok()?;
    Some(number_after(&status, "VmRSS:")? * 1024.0)
}

fn open_files() -> Option<f64> {
    let files = u32::try_from(read_dir("/proc/self/fd").ok()?.count()).ok()?;
    // Looking opens one.
    Some(f64::from(files.saturating_sub(1)))
}

fn max_files() -> Option<f64> {
    number_after(&read_to_string("/proc/self/limits").ok()?, "Max open files")
}

/// The number that stands behind this word at the beginning of a line.
fn number_after(text: &str, word: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(word))?;
    rest.split_whitespace().next()?.parse().ok()
}
