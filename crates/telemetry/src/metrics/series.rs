//! The series of one call, looked up once and then reused. Defines no metric.

use super::Metrics;
use super::catalog::ExemplarHistogram;
use super::labels::{EngineCall, EngineOutcome, QueueName, StoreCall, StoreOutcome};
use prometheus_client::metrics::counter::Counter;
use std::sync::Arc;
use std::time::Duration;

/// The series of one method of the store.
pub(crate) struct StoreSeries {
    ok: Counter,
    unavailable: Counter,
    error: Counter,
    seconds: ExemplarHistogram,
}

impl StoreSeries {
    pub(crate) fn new(metrics: &Metrics, call: &'static str) -> Self {
        let of = |outcome| {
            let calls = &metrics.store_calls;
            calls.get_or_create_owned(&StoreOutcome { call, outcome })
        };
        Self {
            ok: of("ok"),
            unavailable: of("unavailable"),
            error: of("error"),
            seconds: metrics
                .store_seconds
                .get_or_create_owned(&StoreCall { call }),
        }
    }

    /// Records the duration of a call and whether its error, if any, is retryable.
    pub(crate) fn record(&self, took: Duration, retryable: Option<bool>) {
        match retryable {
            None => &self.ok,
            Some(true) => &self.unavailable,
            Some(false) => &self.error,
        }
        .inc();
        self.seconds.observe(took.as_secs_f64(), None, None);
    }
}

/// The series of one method of the engine.
pub(crate) struct EngineSeries {
    outcomes: Vec<(&'static str, Counter)>,
    seconds: ExemplarHistogram,
}

impl EngineSeries {
    pub(crate) fn new(
        metrics: &Metrics,
        engine: &'static str,
        call: &'static str,
        outcomes: &[&'static str],
    ) -> Self {
        let of = |&outcome: &&'static str| {
            let answer = EngineOutcome {
                engine,
                call,
                outcome,
            };
            (outcome, metrics.engine_calls.get_or_create_owned(&answer))
        };
        Self {
            outcomes: outcomes.iter().map(of).collect(),
            seconds: metrics
                .engine_seconds
                .get_or_create_owned(&EngineCall { engine, call }),
        }
    }

    /// Records the duration and the outcome of a call.
    pub(crate) fn record(&self, took: Duration, outcome: &'static str) {
        if let Some((_, counter)) = self.outcomes.iter().find(|(known, _)| *known == outcome) {
            counter.inc();
        }
        self.seconds.observe(took.as_secs_f64(), None, None);
    }
}

/// The series of one queue.
pub(super) struct QueueSeries {
    enqueued: Counter,
    claimed: Counter,
}

impl Metrics {
    fn queue_series(&self, queue: &Arc<str>) -> QueueSeries {
        let name = QueueName {
            queue: queue.clone(),
        };
        QueueSeries {
            enqueued: self.jobs_enqueued.get_or_create_owned(&name),
            claimed: self.jobs_claimed.get_or_create_owned(&name),
        }
    }

    /// Counts enqueued jobs.
    pub(crate) fn jobs_enqueued(&self, queue: &str, jobs: u64) {
        let series = self
            .queues
            .get_or_create(queue, |name| self.queue_series(name));
        series.enqueued.inc_by(jobs);
    }

    /// Counts claimed jobs.
    pub(crate) fn jobs_claimed(&self, queue: &str, jobs: u64) {
        let series = self
            .queues
            .get_or_create(queue, |name| self.queue_series(name));
        series.claimed.inc_by(jobs);
    }
}
