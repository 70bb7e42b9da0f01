//! The series of one call, found once and not again for each. Defines no metric.

use super::Metrics;
use super::book::Spread;
use super::labels::{EngineAnswer, EngineCall, QueueName, StoreAnswer, StoreCall};
use prometheus_client::metrics::counter::Counter;
use std::sync::Arc;
use std::time::Duration;

/// What the calls of one method of the store come to.
pub(crate) struct StoreSeries {
    ok: Counter,
    unavailable: Counter,
    error: Counter,
    seconds: Spread,
}

impl StoreSeries {
    pub(crate) fn new(metrics: &Metrics, call: &'static str) -> Self {
        let of = |outcome| {
            let calls = &metrics.store_calls;
            calls.get_or_create_owned(&StoreAnswer { call, outcome })
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

    /// A call took so long, and failed in a way that is worth trying again or not, if it did.
    pub(crate) fn answered(&self, took: Duration, again: Option<bool>) {
        match again {
            None => &self.ok,
            Some(true) => &self.unavailable,
            Some(false) => &self.error,
        }
        .inc();
        self.seconds.observe(took.as_secs_f64(), None, None);
    }
}

/// What the calls of one question to the engine come to.
pub(crate) struct EngineSeries {
    outcomes: Vec<(&'static str, Counter)>,
    seconds: Spread,
}

impl EngineSeries {
    pub(crate) fn new(
        metrics: &Metrics,
        engine: &'static str,
        call: &'static str,
        outcomes: &[&'static str],
    ) -> Self {
        let of = |&outcome: &&'static str| {
            let answer = EngineAnswer {
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

    /// A call took so long and came to this.
    pub(crate) fn answered(&self, took: Duration, outcome: &'static str) {
        if let Some((_, counter)) = self.outcomes.iter().find(|(known, _)| *known == outcome) {
            counter.inc();
        }
        self.seconds.observe(took.as_secs_f64(), None, None);
    }
}

/// What goes through one queue.
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

    /// So many jobs were put into a queue.
    pub(crate) fn jobs_enqueued(&self, queue: &str, jobs: u64) {
        let series = self.queues.of(queue, |name| self.queue_series(name));
        series.enqueued.inc_by(jobs);
    }

    /// So many jobs of a queue were taken by workers.
    pub(crate) fn jobs_claimed(&self, queue: &str, jobs: u64) {
        let series = self.queues.of(queue, |name| self.queue_series(name));
        series.claimed.inc_by(jobs);
    }
}
