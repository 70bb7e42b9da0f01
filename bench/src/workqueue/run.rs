//! What one measurement of jobs has found: time, and what it cost. Knows nothing of what was done.

use crate::backend::{BenchBackend, Extent, Meter, StatementCost};
use crate::report::{Outcome, median};
use crate::usage::{Usage, Used};
use anyhow::Result;

/// One measurement.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Run {
    pub(crate) jobs: u32,
    pub(crate) used: Used,
    /// Versions of rows that became dead.
    pub(crate) outdated: Option<f64>,
}

/// A measurement under way; costs count from here.
pub(crate) struct Begun {
    meter: Box<dyn Meter>,
    before: Extent,
}

impl Begun {
    pub(crate) async fn new(backend: &mut dyn BenchBackend) -> Result<Self> {
        Ok(Self {
            before: backend.extent().await?,
            meter: backend.meter().await?,
        })
    }

    /// The same while stores are open. What they did before counts among the dead.
    pub(crate) async fn while_open(backend: &mut dyn BenchBackend) -> Result<Self> {
        Ok(Self {
            before: Extent {
                outdated: Some(0.0),
                ..Extent::default()
            },
            meter: backend.meter().await?,
        })
    }

    /// Time counts from here.
    pub(crate) async fn usage(&self) -> Result<Usage<'_>> {
        Usage::begin(&*self.meter).await
    }

    /// The statements that took most of the time.
    pub(crate) async fn statements(&self) -> Result<Vec<StatementCost>> {
        self.meter.statements().await
    }

    /// Call it when the stores that were used are dropped.
    pub(crate) async fn end(
        self,
        backend: &mut dyn BenchBackend,
        jobs: u32,
        used: Used,
    ) -> Result<Run> {
        let after = backend.extent().await?;
        Ok(Run {
            jobs,
            used,
            outdated: after
                .outdated
                .zip(self.before.outdated)
                .map(|(after, before)| after - before),
        })
    }
}

impl Run {
    pub(crate) fn rate(&self) -> f64 {
        self.used.rate(self.jobs)
    }

    /// Adds what each job cost.
    pub(crate) fn costs(&self, outcome: Outcome) -> Outcome {
        let each = |value: f64| value / f64::from(self.jobs.max(1));
        self.used
            .of_each_job(self.jobs, outcome)
            .maybe("dead", self.outdated.map(each), "rows/job")
    }
}

/// The middle one of their rates.
pub(crate) fn rate(runs: &[Run]) -> f64 {
    median(runs.iter().map(Run::rate).collect())
}

/// The one with the middle rate; its costs are shown.
pub(crate) fn middle(runs: &[Run]) -> Option<&Run> {
    let mut order: Vec<&Run> = runs.iter().collect();
    order.sort_by(|one, other| one.rate().total_cmp(&other.rate()));
    order.get(order.len() / 2).copied()
}
