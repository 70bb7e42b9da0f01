//! The result of one measurement of jobs: time and cost. Independent of what was measured.

use crate::backend::{BenchBackend, DatabaseSize, Meter, StatementCost};
use crate::report::{BenchResult, median};
use crate::usage::{Usage, UsageMeter};
use anyhow::Result;

/// One measurement.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Run {
    pub(crate) jobs: u32,
    pub(crate) used: Usage,
    /// Row versions that became dead.
    pub(crate) dead_total: Option<f64>,
}

/// Measures the cost of a run, from its creation to `end`.
pub(crate) struct RunMeter {
    meter: Box<dyn Meter>,
    before: DatabaseSize,
}

impl RunMeter {
    pub(crate) async fn new(backend: &mut dyn BenchBackend) -> Result<Self> {
        Ok(Self {
            before: backend.size().await?,
            meter: backend.meter().await?,
        })
    }

    /// Starts a meter while stores are open. Dead rows from before count too.
    pub(crate) async fn with_open_stores(backend: &mut dyn BenchBackend) -> Result<Self> {
        Ok(Self {
            before: DatabaseSize {
                dead_total: Some(0.0),
                ..DatabaseSize::default()
            },
            meter: backend.meter().await?,
        })
    }

    /// Starts the clock.
    pub(crate) async fn usage(&self) -> Result<UsageMeter<'_>> {
        UsageMeter::begin(&*self.meter).await
    }

    /// Returns the most expensive statements.
    pub(crate) async fn statements(&self) -> Result<Vec<StatementCost>> {
        self.meter.statements().await
    }

    /// Ends the measurement. Drop the stores first.
    pub(crate) async fn end(
        self,
        backend: &mut dyn BenchBackend,
        jobs: u32,
        used: Usage,
    ) -> Result<Run> {
        let after = backend.size().await?;
        Ok(Run {
            jobs,
            used,
            dead_total: after
                .dead_total
                .zip(self.before.dead_total)
                .map(|(after, before)| after - before),
        })
    }
}

impl Run {
    pub(crate) fn rate(&self) -> f64 {
        self.used.rate(self.jobs)
    }

    /// Adds the cost per job.
    pub(crate) fn costs(&self, outcome: BenchResult) -> BenchResult {
        let each = |value: f64| value / f64::from(self.jobs.max(1));
        self.used.per_job(self.jobs, outcome).optional_metric(
            "dead",
            self.dead_total.map(each),
            "rows/job",
        )
    }
}

/// Returns the median rate.
pub(crate) fn rate(runs: &[Run]) -> f64 {
    median(runs.iter().map(Run::rate).collect())
}

/// Returns the run with the median rate, whose costs are shown.
pub(crate) fn median_run(runs: &[Run]) -> Option<&Run> {
    let mut order: Vec<&Run> = runs.iter().collect();
    order.sort_by(|one, other| one.rate().total_cmp(&other.rate()));
    order.get(order.len() / 2).copied()
}
