//! Creates spans and queues them for export. Knows no collector and no meaning of the spans.

mod export;
mod rate_limiter;
mod span;

pub use export::{InvalidEndpoint, TraceOptions};
pub use span::Span;

use crate::metrics::Metrics;
use leasehold_core::TraceContext;
use opentelemetry::InstrumentationScope;
use opentelemetry_sdk::trace::{
    BatchSpanProcessor, IdGenerator, RandomIdGenerator, SpanData, SpanProcessor,
};
use rate_limiter::TraceRateLimiter;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

/// The most spans queued for export. Further spans are dropped, which bounds the memory used while the collector is unavailable.
const MAX_QUEUED_SPANS: usize = 8_192;

/// Creates spans; clones share one exporter. A disabled tracer creates no-op spans.
#[derive(Clone, Default)]
pub struct Tracer(Option<Arc<Inner>>);

struct Inner {
    processor: BatchSpanProcessor,
    ids: RandomIdGenerator,
    limiter: TraceRateLimiter,
    scope: InstrumentationScope,
    metrics: Arc<Metrics>,
    queued: Arc<AtomicUsize>,
}

impl Inner {
    fn new_trace(&self) -> u128 {
        u128::from_be_bytes(self.ids.new_trace_id().to_bytes())
    }
}

impl Tracer {
    /// Creates a disabled tracer.
    pub fn off() -> Self {
        Self(None)
    }

    /// Creates a tracer that exports its spans over OTLP. Must be called inside the async runtime; connects with the first export.
    ///
    /// # Errors
    /// If the endpoint is invalid.
    pub fn export(options: &TraceOptions, metrics: Arc<Metrics>) -> Result<Self, InvalidEndpoint> {
        let queued = Arc::new(AtomicUsize::new(0));
        let processor = export::processor(options, metrics.clone(), queued.clone())?;
        let scope =
            InstrumentationScope::builder("leasehold").with_version(env!("CARGO_PKG_VERSION"));
        Ok(Self(Some(Arc::new(Inner {
            processor,
            ids: RandomIdGenerator::default(),
            limiter: TraceRateLimiter::new(options.per_second),
            scope: scope.build(),
            metrics,
            queued,
        }))))
    }

    /// Returns whether the tracer is enabled.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Begins a span now. It is recorded if its parent is; without a parent it begins a new trace, if the rate limit allows one.
    pub fn begin(&self, name: impl Into<Cow<'static, str>>, parent: Option<&TraceContext>) -> Span {
        self.begin_at(name, parent, SystemTime::now())
    }

    /// Like [`Tracer::begin`], with a given start time.
    pub fn begin_at(
        &self,
        name: impl Into<Cow<'static, str>>,
        parent: Option<&TraceContext>,
        at: SystemTime,
    ) -> Span {
        let Some(inner) = &self.0 else {
            return Span::noop();
        };
        let recorded = match parent {
            Some(parent) => parent.sampled,
            None => inner.limiter.try_acquire(),
        };
        if !recorded {
            return Span::noop();
        }
        let context = TraceContext {
            trace: parent.map_or_else(|| inner.new_trace(), |parent| parent.trace),
            span: u64::from_be_bytes(inner.ids.new_span_id().to_bytes()),
            sampled: true,
        };
        Span::open(self.clone(), name.into(), context, parent, at)
    }

    /// Exports the queued spans within this time, then creates no more.
    pub async fn stop(&self, within: Duration) {
        let Some(inner) = self.0.clone() else {
            return;
        };
        let stopping = move || inner.processor.shutdown_with_timeout(within);
        if let Ok(Err(error)) = tokio::task::spawn_blocking(stopping).await {
            tracing::debug!(%error, "some spans were not exported before shutdown");
        }
    }

    fn submit(&self, span: impl FnOnce(InstrumentationScope) -> SpanData) {
        let Some(inner) = &self.0 else {
            return;
        };
        if inner.queued.fetch_add(1, Ordering::Relaxed) >= MAX_QUEUED_SPANS {
            inner.queued.fetch_sub(1, Ordering::Relaxed);
            inner.metrics.spans_failed(1);
            return;
        }
        inner.processor.on_end(span(inner.scope.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// Returns a tracer whose collector does not exist.
    fn tracer(per_second: u32) -> Tracer {
        let options = TraceOptions {
            endpoint: "http://127.0.0.1:1".to_owned(),
            per_second,
            instance: "test".to_owned(),
        };
        Tracer::export(&options, Arc::default()).unwrap()
    }

    fn caller(sampled: bool) -> TraceContext {
        let flags = u8::from(sampled);
        let text = format!("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-{flags:02}");
        text.parse().unwrap()
    }

    #[tokio::test]
    async fn caller_decides_about_sampling_regardless_of_the_rate_limit() {
        for per_second in [0, 1] {
            let tracer = tracer(per_second);
            for _ in 0..3 {
                let span = tracer.begin("part", Some(&caller(true)));
                let here = span.context().unwrap();
                assert_eq!(here.trace_id(), caller(true).trace_id());
                assert_ne!(here.span, caller(true).span);
                assert!(here.sampled);
                let inner = span.begin("inner").context().unwrap();
                assert_eq!(inner.trace_id(), here.trace_id());
                assert!(!tracer.begin("part", Some(&caller(false))).is_recorded());
            }
        }
    }

    #[tokio::test]
    async fn new_traces_are_rate_limited() {
        assert!(!tracer(0).begin("flow", None).is_recorded());
        for _ in 0..20 {
            let (tracer, begun) = (tracer(2), Instant::now());
            let recorded = (0..5).filter(|_| tracer.begin("flow", None).is_recorded());
            let recorded = recorded.count();
            // Repeated if the machine was so slow that another trace was allowed meanwhile.
            if begun.elapsed() < Duration::from_millis(500) {
                assert_eq!(recorded, 2);
                return;
            }
        }
        panic!("beginning five traces took longer than half a second each time");
    }

    #[test]
    fn disabled_tracer_records_nothing() {
        let tracer = Tracer::off();
        let mut span = tracer.begin("call", Some(&caller(true)));
        span.set("key", "value");
        span.failed("error");
        assert_eq!(span.context(), None);
        assert!(!span.begin("part").is_recorded());
    }

    #[tokio::test]
    async fn stop_ends_in_time_without_a_collector() {
        let tracer = tracer(1);
        tracer.begin("flow", None).end();
        let stopped = tokio::time::timeout(
            Duration::from_secs(30),
            tracer.stop(Duration::from_millis(100)),
        );
        assert!(stopped.await.is_ok());
    }

    #[tokio::test]
    async fn invalid_endpoint_is_rejected() {
        let options = TraceOptions {
            endpoint: "http://no endpoint".to_owned(),
            per_second: 1,
            instance: "test".to_owned(),
        };
        let error = Tracer::export(&options, Arc::default()).err().unwrap();
        assert!(
            error
                .to_string()
                .starts_with("failed to set up trace export: "),
            "{error}"
        );
    }
}
