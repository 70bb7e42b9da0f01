//! The book of all metrics: whatever is defined here is registered, and described on the page of the reference. Counts nothing.

use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::exemplar::HistogramWithExemplars;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::{Metric, Registry};
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

/// A gauge of seconds and the like.
pub type Level = Gauge<f64, AtomicU64>;

/// A histogram whose buckets may name a trace.
pub(crate) type Spread = HistogramWithExemplars<TraceId>;

/// The trace that an example belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct TraceId {
    pub(crate) trace_id: String,
}

/// A counter whose name Prometheus would not give to one, so that its type is not said. It only rises.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rising(Counter);

impl Rising {
    pub(crate) fn inc_by(&self, by: u64) {
        self.0.inc_by(by);
    }
}

impl TypedMetric for Rising {
    const TYPE: MetricType = MetricType::Unknown;
}

impl EncodeMetric for Rising {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        encoder.encode_gauge(&self.0.get())
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

/// A gauge that is not shown while nothing is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sometimes(Arc<Mutex<Option<f64>>>);

impl Sometimes {
    pub(crate) fn set(&self, known: Option<f64>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = known;
    }

    fn get(&self) -> Option<f64> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EncodeMetric for Sometimes {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        self.get()
            .map_or(Ok(()), |known| encoder.encode_gauge(&known))
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }

    fn is_empty(&self) -> bool {
        self.get().is_none()
    }
}

/// One metric as the reference shows it.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the page of the reference is made by a test")
)]
pub(crate) struct Entry {
    pub(crate) section: &'static str,
    pub(crate) name: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) labels: &'static [&'static str],
    pub(crate) help: &'static str,
}

/// A metric to define: its whole name as it is scraped, and what it says, without a full stop.
pub(crate) struct Define {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) labels: &'static [&'static str],
}

pub(crate) const fn plain(name: &'static str, help: &'static str) -> Define {
    Define {
        name,
        help,
        labels: &[],
    }
}

pub(crate) const fn by(
    labels: &'static [&'static str],
    name: &'static str,
    help: &'static str,
) -> Define {
    Define { name, help, labels }
}

#[derive(Default)]
pub(crate) struct Book {
    pub(crate) registry: Registry,
    pub(crate) entries: Vec<Entry>,
    section: &'static str,
}

impl Book {
    /// What follows belongs together.
    pub(crate) fn section(&mut self, title: &'static str) {
        self.section = title;
    }

    pub(crate) fn counter(&mut self, define: Define) -> Counter {
        self.enter(&define, "counter", Counter::default())
    }

    pub(crate) fn counters<L: Labels>(&mut self, define: Define) -> Family<L, Counter> {
        self.enter(&define, "counter", Family::default())
    }

    pub(crate) fn rising(&mut self, define: Define) -> Rising {
        self.enter(&define, "unknown, only rises", Rising::default())
    }

    pub(crate) fn risings<L: Labels>(&mut self, define: Define) -> Family<L, Rising> {
        self.enter(&define, "unknown, only rises", Family::default())
    }

    pub(crate) fn gauge(&mut self, define: Define) -> Level {
        self.enter(&define, "gauge", Level::default())
    }

    pub(crate) fn sometimes(&mut self, define: Define) -> Sometimes {
        self.enter(&define, "gauge", Sometimes::default())
    }

    pub(crate) fn gauges<L: Labels>(&mut self, define: Define) -> Family<L, Level> {
        self.enter(&define, "gauge", Family::default())
    }

    pub(crate) fn histogram(&mut self, define: Define, buckets: &'static [f64]) -> Spread {
        self.enter(&define, "histogram", Spread::new(buckets.iter().copied()))
    }

    pub(crate) fn histograms<L: Labels>(
        &mut self,
        define: Define,
        make: fn() -> Spread,
    ) -> Family<L, Spread> {
        self.enter(&define, "histogram", Family::new_with_constructor(make))
    }

    fn enter<M: Metric + Clone>(&mut self, define: &Define, kind: &'static str, metric: M) -> M {
        self.describe(define, kind);
        // The registry appends to a counter's name what every counter's ends in.
        let name = define.name.strip_suffix("_total").unwrap_or(define.name);
        self.registry.register(name, define.help, metric.clone());
        metric
    }
}

impl Book {
    /// Describes a metric that is shown in another way.
    pub(crate) fn describe(&mut self, define: &Define, kind: &'static str) {
        self.entries.push(Entry {
            section: self.section,
            name: define.name,
            kind,
            labels: define.labels,
            help: define.help,
        });
    }
}

/// What tells the series of one metric apart.
pub(crate) trait Labels:
    EncodeLabelSet + Clone + Debug + PartialEq + Eq + Hash + Send + Sync + 'static
{
}

impl<T: EncodeLabelSet + Clone + Debug + PartialEq + Eq + Hash + Send + Sync + 'static> Labels
    for T
{
}
