//! Makes spans and gives them to whoever exports them. Knows no collector and nothing of what the spans tell.

mod allowance;
mod export;
mod span;

pub use export::{InvalidEndpoint, TraceOptions};
pub use span::Span;

use crate::metrics::Metrics;
use allowance::Allowance;
use leasehold_core::TraceContext;
use opentelemetry::InstrumentationScope;
use opentelemetry_sdk::trace::{
    BatchSpanProcessor, IdGenerator, RandomIdGenerator, SpanData, SpanProcessor,
};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

/// Spans that wait to be exported; what comes on top is dropped, so that a collector that is away costs memory only up to here.
const WAITING_MAX: usize = 8_192;

/// Makes spans; a copy is the same one. One that is off makes spans that cost nothing and are seen by nobody.
#[derive(Clone, Default)]
pub struct Tracer(Option<Arc<Inner>>);

struct Inner {
    processor: BatchSpanProcessor,
    ids: RandomIdGenerator,
    allowance: Allowance,
    scope: InstrumentationScope,
    metrics: Arc<Metrics>,
    waiting: Arc<AtomicUsize>,
}

impl Inner {
    fn new_trace(&self) -> u128 {
        u128::from_be_bytes(self.ids.new_trace_id().to_bytes())
    }
}

impl Tracer {
    /// One that makes no spans.
    pub fn off() -> Self {
        Self(None)
    }

    /// One that exports its spans over OTLP. Must be made inside the async runtime; connects when there is something to export.
    ///
    /// # Errors
    /// If the endpoint is none.
    pub fn export(options: &TraceOptions, metrics: Arc<Metrics>) -> Result<Self, InvalidEndpoint> {
        let waiting = Arc::new(AtomicUsize::new(0));
        let processor = export::processor(options, metrics.clone(), waiting.clone())?;
        let scope =
            InstrumentationScope::builder("leasehold").with_version(env!("CARGO_PKG_VERSION"));
        Ok(Self(Some(Arc::new(Inner {
            processor,
            ids: RandomIdGenerator::default(),
            allowance: Allowance::new(options.per_second),
            scope: scope.build(),
            metrics,
            waiting,
        }))))
    }

    /// Whether anybody may see a span.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Begins a span now. If its parent is recorded it is too, and if not, not; without a parent a trace begins here, if there may be another.
    pub fn begin(&self, name: impl Into<Cow<'static, str>>, parent: Option<&TraceContext>) -> Span {
        self.begin_at(name, parent, SystemTime::now())
    }

    /// As [`Tracer::begin`], with the time at which it began.
    pub fn begin_at(
        &self,
        name: impl Into<Cow<'static, str>>,
        parent: Option<&TraceContext>,
        at: SystemTime,
    ) -> Span {
        let Some(inner) = &self.0 else {
            return Span::unseen();
        };
        let recorded = match parent {
            Some(parent) => parent.sampled,
            None => inner.allowance.take(),
        };
        if !recorded {
            return Span::unseen();
        }
        let context = TraceContext {
            trace: parent.map_or_else(|| inner.new_trace(), |parent| parent.trace),
            span: u64::from_be_bytes(inner.ids.new_span_id().to_bytes()),
            sampled: true,
        };
        Span::open(self.clone(), name.into(), context, parent, at)
    }

    /// Exports what waits and makes no more spans, within this time.
    pub async fn stop(&self, within: Duration) {
        let Some(inner) = self.0.clone() else {
            return;
        };
        let stopping = move || inner.processor.shutdown_with_timeout(within);
        if let Ok(Err(error)) = tokio::task::spawn_blocking(stopping).await {
            tracing::debug!(%error, "not all spans were exported before the end");
        }
    }

    fn give(&self, span: impl FnOnce(InstrumentationScope) -> SpanData) {
        let Some(inner) = &self.0 else {
            return;
        };
        if inner.waiting.fetch_add(1, Ordering::Relaxed) >= WAITING_MAX {
            inner.waiting.fetch_sub(1, Ordering::Relaxed);
            inner.metrics.spans_failed(1);
            return;
        }
        inner.processor.on_end(span(inner.scope.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One whose collector is nowhere.
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
    async fn a_callers_decision_is_followed_whatever_is_allowed_here() {
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
    async fn traces_that_begin_here_are_as_many_as_are_allowed() {
        assert!(!tracer(0).begin("flow", None).is_recorded());
        let tracer = tracer(2);
        let begun = (0..5).filter(|_| tracer.begin("flow", None).is_recorded());
        assert_eq!(begun.count(), 2);
    }

    #[test]
    fn what_is_off_records_nothing() {
        let tracer = Tracer::off();
        let mut span = tracer.begin("call", Some(&caller(true)));
        span.set("said", "nothing");
        span.failed("nobody hears it");
        assert_eq!(span.context(), None);
        assert!(!span.begin("part").is_recorded());
    }

    #[tokio::test]
    async fn a_stop_ends_in_its_time_though_the_collector_is_away() {
        let tracer = tracer(1);
        tracer.begin("flow", None).end();
        let stopped = tokio::time::timeout(
            Duration::from_secs(30),
            tracer.stop(Duration::from_millis(100)),
        );
        assert!(stopped.await.is_ok());
    }

    #[tokio::test]
    async fn what_is_no_endpoint_is_refused() {
        let options = TraceOptions {
            endpoint: "http://no endpoint".to_owned(),
            per_second: 1,
            instance: "test".to_owned(),
        };
        let error = Tracer::export(&options, Arc::default()).err().unwrap();
        assert!(
            error.to_string().starts_with("traces cannot be exported: "),
            "{error}"
        );
    }
}
