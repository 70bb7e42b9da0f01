//! What a measurement cost: this process's processor time and memory, and the database's own counts. Linux tells the former; elsewhere it is left out.

use crate::backend::{Meter, Reading};
use crate::processor;
use crate::report::Outcome;
use anyhow::Result;
use std::fs;
use std::time::{Duration, Instant};

/// A measurement under way.
pub(crate) struct Usage<'a> {
    meter: &'a dyn Meter,
    before: Reading,
    processor: Option<f64>,
    begun: Instant,
}

/// What it cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Used {
    pub(crate) elapsed: Duration,
    /// Seconds of processor time of this process.
    pub(crate) processor: Option<f64>,
    /// The most memory it held, in MiB.
    pub(crate) memory: Option<f64>,
    /// What the database did.
    pub(crate) reading: Reading,
}

impl<'a> Usage<'a> {
    pub(crate) async fn begin(meter: &'a dyn Meter) -> Result<Self> {
        // Forgets the largest size so far, so that the next one read is this measurement's.
        let _ = fs::write("/proc/self/clear_refs", "5");
        Ok(Self {
            meter,
            before: meter.read().await?,
            processor: processor::of_this_process(),
            begun: Instant::now(),
        })
    }

    pub(crate) async fn end(self) -> Result<Used> {
        let elapsed = self.begun.elapsed();
        let processor = processor::of_this_process().zip(self.processor);
        Ok(Used {
            elapsed,
            processor: processor.map(|(after, before)| after - before),
            memory: peak_mib(),
            reading: self.meter.read().await?.since(self.before),
        })
    }
}

impl Used {
    /// How many of `requests` were done in a second.
    pub(crate) fn rate(&self, requests: u32) -> f64 {
        f64::from(requests) / self.elapsed.as_secs_f64()
    }

    /// Adds what each of `requests` cost.
    pub(crate) fn of_each(&self, requests: u32, outcome: Outcome) -> Outcome {
        self.of_every("request", requests, outcome)
    }

    /// Adds what each of `jobs` cost.
    pub(crate) fn of_each_job(&self, jobs: u32, outcome: Outcome) -> Outcome {
        self.of_every("job", jobs, outcome)
    }

    fn of_every(&self, noun: &str, count: u32, outcome: Outcome) -> Outcome {
        let each = |value: Option<f64>| value.map(|value| value / f64::from(count.max(1)));
        outcome
            .metric("seconds", self.elapsed.as_secs_f64(), "s")
            .maybe("cpu", self.processor, "s")
            .maybe("server_cpu", self.reading.processor, "s")
            .maybe("memory", self.memory, "MiB")
            .maybe(
                "statements",
                each(self.reading.statements),
                &format!("statements/{noun}"),
            )
            .maybe(
                "transactions",
                each(self.reading.transactions),
                &format!("transactions/{noun}"),
            )
            .maybe(
                "wal",
                each(self.reading.log_bytes),
                &format!("bytes/{noun}"),
            )
    }

    /// The same, with the buffers that each touched.
    pub(crate) fn with_buffers(&self, requests: u32, outcome: Outcome) -> Outcome {
        let buffers = self
            .reading
            .statements
            .and(self.reading.touched)
            .map(|touched| touched / f64::from(requests.max(1)));
        self.of_each(requests, outcome)
            .maybe("buffers", buffers, "buffers/request")
    }
}

fn peak_mib() -> Option<f64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kib / 1024.0)
}
