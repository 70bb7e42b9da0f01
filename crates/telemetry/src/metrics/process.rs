//! Process metrics from /proc, under the conventional Prometheus names. Linux only; elsewhere they are absent.

use super::catalog::{MetricCatalog, MetricDefinition, plain};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use std::fs::{read_dir, read_to_string};

const CPU: MetricDefinition = plain("process_cpu_seconds_total", "CPU time used by the process");
const MEMORY: MetricDefinition = plain(
    "process_resident_memory_bytes",
    "Resident memory of the process",
);
const OPEN_FILES: MetricDefinition = plain("process_open_fds", "Open file descriptors");
const MAX_FILES: MetricDefinition =
    plain("process_max_fds", "Maximum number of open file descriptors");
const STARTED: MetricDefinition = plain(
    "process_start_time_seconds",
    "Start time of the process, in seconds since 1970",
);

/// The kernel's clock ticks per second (`USER_HZ`), 100 on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// Registers the process metrics and the build version.
pub(super) fn define(catalog: &mut MetricCatalog) {
    catalog.section("Process");
    for gauge in [&MEMORY, &OPEN_FILES, &MAX_FILES, &STARTED] {
        catalog.describe(gauge, "gauge");
    }
    catalog.describe(&CPU, "counter");
    catalog.registry.register_collector(Box::new(Process));
    let build = MetricDefinition {
        name: "leasehold_build_info",
        help: "Version of the program; always 1",
        labels: &["version"],
    };
    catalog.describe(&build, "gauge");
    let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
    catalog
        .registry
        .register("leasehold_build", build.help, version);
}

#[derive(Debug)]
struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        for (definition, value) in [
            (&MEMORY, memory()),
            (&OPEN_FILES, open_files()),
            (&MAX_FILES, max_files()),
            (&STARTED, started()),
        ] {
            if let Some(value) = value {
                let kind = MetricType::Gauge;
                let help = format!("{}.", definition.help);
                let metric = encoder.encode_descriptor(definition.name, &help, None, kind)?;
                ConstGauge::new(value).encode(metric)?;
            }
        }
        if let Some(value) = cpu() {
            let (name, kind) = (CPU.name.trim_end_matches("_total"), MetricType::Counter);
            let help = format!("{}.", CPU.help);
            let metric = encoder.encode_descriptor(name, &help, None, kind)?;
            ConstCounter::new(value).encode(metric)?;
        }
        Ok(())
    }
}

/// Returns the fields of /proc/self/stat from the third on; the second is the process name, which may contain any character.
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
    // Reading the directory opens one.
    Some(f64::from(files.saturating_sub(1)))
}

fn max_files() -> Option<f64> {
    number_after(&read_to_string("/proc/self/limits").ok()?, "Max open files")
}

/// Returns the number after this word at the start of a line.
fn number_after(text: &str, word: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(word))?;
    rest.split_whitespace().next()?.parse().ok()
}
