//! Cost of a measurement: CPU time and memory of this process (Linux only), and the database's counters.

use crate::backend::{Meter, Reading};
use crate::cpu;
use crate::report::BenchResult;
use anyhow::Result;
use std::fs;
use std::time::{Duration, Instant};

/// Measures the cost from `begin` to `end`.
pub(crate) struct UsageMeter<'a> {
    meter: &'a dyn Meter,
    before: Reading,
    cpu: Option<f64>,
    begun: Instant,
}

/// The cost of a measurement.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) elapsed: Duration,
    /// CPU seconds of this process.
    pub(crate) cpu: Option<f64>,
    /// Peak memory in MiB.
    pub(crate) memory: Option<f64>,
    /// The database's counters.
    pub(crate) reading: Reading,
}

impl<'a> UsageMeter<'a> {
    pub(crate) async fn begin(meter: &'a dyn Meter) -> Result<Self> {
        // Resets the peak memory, so that the next reading covers this measurement only.
        let _ = fs::write("/proc/self/clear_refs", "5");
        Ok(Self {
            meter,
            before: meter.read().await?,
            cpu: cpu::own_seconds(),
            begun: Instant::now(),
        })
    }

    pub(crate) async fn end(self) -> Result<Usage> {
        let elapsed = self.begun.elapsed();
        let cpu = cpu::own_seconds().zip(self.cpu);
        Ok(Usage {
            elapsed,
            cpu: cpu.map(|(after, before)| after - before),
            memory: peak_mib(),
            reading: self.meter.read().await?.since(self.before),
        })
    }
}

impl Usage {
    /// Returns the rate per second of `requests`.
    pub(crate) fn rate(&self, requests: u32) -> f64 {
        f64::from(requests) / self.elapsed.as_secs_f64()
    }

    /// Adds the cost for each request.
    pub(crate) fn per_request(&self, requests: u32, outcome: BenchResult) -> BenchResult {
        self.per_item("request", requests, outcome)
    }

    /// Adds the cost for each job.
    pub(crate) fn per_job(&self, jobs: u32, outcome: BenchResult) -> BenchResult {
        self.per_item("job", jobs, outcome)
    }

    fn per_item(&self, noun: &str, count: u32, outcome: BenchResult) -> BenchResult {
        let each = |value: Option<f64>| value.map(|value| value / f64::from(count.max(1)));
        outcome
            .metric("seconds", self.elapsed.as_secs_f64(), "s")
            .optional_metric("cpu", self.cpu, "s")
            .optional_metric("server_cpu", self.reading.cpu, "s")
            .optional_metric("memory", self.memory, "MiB")
            .optional_metric(
                "statements",
                each(self.reading.statements),
                &format!("statements/{noun}"),
            )
            .optional_metric(
                "transactions",
                each(self.reading.transactions),
                &format!("transactions/{noun}"),
            )
            .optional_metric(
                "wal",
                each(self.reading.log_bytes),
                &format!("bytes/{noun}"),
            )
    }

    /// Adds the cost for each request, buffers included.
    pub(crate) fn with_buffers(&self, requests: u32, outcome: BenchResult) -> BenchResult {
        let buffers = self
            .reading
            .statements
            .and(self.reading.touched)
            .map(|touched| touched / f64::from(requests.max(1)));
        self.per_request(requests, outcome)
            .optional_metric("buffers", buffers, "buffers/request")
    }
}

fn peak_mib() -> Option<f64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kib / 1024.0)
}
