//! The catalog of all metrics: registers each metric and describes it for the reference page. Counts nothing.

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

/// A gauge with a floating-point value.
pub type FloatGauge = Gauge<f64, AtomicU64>;

/// A histogram whose buckets may carry a trace id as exemplar.
pub(crate) type ExemplarHistogram = HistogramWithExemplars<TraceId>;

/// The label of an exemplar.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct TraceId {
    pub(crate) trace_id: String,
}

/// A counter whose name does not end in `_total`, so it is exposed without a type.
#[derive(Clone, Debug, Default)]
pub(crate) struct UntypedCounter(Counter);

impl UntypedCounter {
    pub(crate) fn inc_by(&self, by: u64) {
        self.0.inc_by(by);
    }
}

impl TypedMetric for UntypedCounter {
    const TYPE: MetricType = MetricType::Unknown;
}

impl EncodeMetric for UntypedCounter {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        encoder.encode_gauge(&self.0.get())
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

/// A gauge that is absent while its value is unknown.
#[derive(Clone, Debug, Default)]
pub(crate) struct OptionalGauge(Arc<Mutex<Option<f64>>>);

impl OptionalGauge {
    pub(crate) fn set(&self, value: Option<f64>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = value;
    }

    fn get(&self) -> Option<f64> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EncodeMetric for OptionalGauge {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        self.get()
            .map_or(Ok(()), |value| encoder.encode_gauge(&value))
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }

    fn is_empty(&self) -> bool {
        self.get().is_none()
    }
}

/// One metric on the reference page.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "a test generates the reference page")
)]
pub(crate) struct CatalogEntry {
    pub(crate) section: &'static str,
    pub(crate) name: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) labels: &'static [&'static str],
    pub(crate) help: &'static str,
}

/// The definition of a metric: its full name as scraped, and its help text without a final period.
pub(crate) struct MetricDefinition {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) labels: &'static [&'static str],
}

pub(crate) const fn plain(name: &'static str, help: &'static str) -> MetricDefinition {
    MetricDefinition {
        name,
        help,
        labels: &[],
    }
}

pub(crate) const fn labelled(
    labels: &'static [&'static str],
    name: &'static str,
    help: &'static str,
) -> MetricDefinition {
    MetricDefinition { name, help, labels }
}

/// All metrics, registered and described.
#[derive(Default)]
pub(crate) struct MetricCatalog {
    pub(crate) registry: Registry,
    pub(crate) entries: Vec<CatalogEntry>,
    section: &'static str,
}

impl MetricCatalog {
    /// Starts a section of the reference page; the metrics that follow belong to it.
    pub(crate) fn section(&mut self, title: &'static str) {
        self.section = title;
    }

    pub(crate) fn counter(&mut self, definition: MetricDefinition) -> Counter {
        self.register(&definition, "counter", Counter::default())
    }

    pub(crate) fn counters<L: Labels>(
        &mut self,
        definition: MetricDefinition,
    ) -> Family<L, Counter> {
        self.register(&definition, "counter", Family::default())
    }

    pub(crate) fn untyped_counter(&mut self, definition: MetricDefinition) -> UntypedCounter {
        self.register(
            &definition,
            "unknown (monotonic)",
            UntypedCounter::default(),
        )
    }

    pub(crate) fn untyped_counters<L: Labels>(
        &mut self,
        definition: MetricDefinition,
    ) -> Family<L, UntypedCounter> {
        self.register(&definition, "unknown (monotonic)", Family::default())
    }

    pub(crate) fn gauge(&mut self, definition: MetricDefinition) -> FloatGauge {
        self.register(&definition, "gauge", FloatGauge::default())
    }

    pub(crate) fn optional_gauge(&mut self, definition: MetricDefinition) -> OptionalGauge {
        self.register(&definition, "gauge", OptionalGauge::default())
    }

    pub(crate) fn gauges<L: Labels>(
        &mut self,
        definition: MetricDefinition,
    ) -> Family<L, FloatGauge> {
        self.register(&definition, "gauge", Family::default())
    }

    pub(crate) fn histogram(
        &mut self,
        definition: MetricDefinition,
        buckets: &'static [f64],
    ) -> ExemplarHistogram {
        self.register(
            &definition,
            "histogram",
            ExemplarHistogram::new(buckets.iter().copied()),
        )
    }

    pub(crate) fn histograms<L: Labels>(
        &mut self,
        definition: MetricDefinition,
        make: fn() -> ExemplarHistogram,
    ) -> Family<L, ExemplarHistogram> {
        self.register(&definition, "histogram", Family::new_with_constructor(make))
    }

    fn register<M: Metric + Clone>(
        &mut self,
        definition: &MetricDefinition,
        kind: &'static str,
        metric: M,
    ) -> M {
        self.describe(definition, kind);
        // The registry appends `_total` to the name of a counter.
        let name = definition
            .name
            .strip_suffix("_total")
            .unwrap_or(definition.name);
        self.registry
            .register(name, definition.help, metric.clone());
        metric
    }
}

impl MetricCatalog {
    /// Describes a metric that is encoded elsewhere.
    pub(crate) fn describe(&mut self, definition: &MetricDefinition, kind: &'static str) {
        self.entries.push(CatalogEntry {
            section: self.section,
            name: definition.name,
            kind,
            labels: definition.labels,
            help: definition.help,
        });
    }
}

/// A label set.
pub(crate) trait Labels:
    EncodeLabelSet + Clone + Debug + PartialEq + Eq + Hash + Send + Sync + 'static
{
}

impl<T: EncodeLabelSet + Clone + Debug + PartialEq + Eq + Hash + Send + Sync + 'static> Labels
    for T
{
}
