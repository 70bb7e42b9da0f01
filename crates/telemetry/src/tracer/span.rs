//! A span of a trace. A span that is not recorded is empty and costs nothing.

use super::Tracer;
use leasehold_core::TraceContext;
use opentelemetry::trace::{Link, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceState};
use opentelemetry::{KeyValue, Value};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use std::borrow::Cow;
use std::time::SystemTime;

/// An open span. It ends when it is dropped, unless it was ended before.
#[must_use = "a span that is dropped at once has no length"]
#[derive(Default)]
pub struct Span(Option<Box<OpenSpan>>);

struct OpenSpan {
    tracer: Tracer,
    name: Cow<'static, str>,
    context: TraceContext,
    parent: Option<TraceContext>,
    /// Whether the parent is in this process.
    parent_is_local: bool,
    kind: SpanKind,
    from: SystemTime,
    attributes: Vec<KeyValue>,
    links: Vec<Link>,
    status: Status,
}

impl Span {
    /// Creates a span that is not recorded.
    pub fn noop() -> Self {
        Self(None)
    }

    pub(super) fn open(
        tracer: Tracer,
        name: Cow<'static, str>,
        context: TraceContext,
        parent: Option<&TraceContext>,
        from: SystemTime,
    ) -> Self {
        Self(Some(Box::new(OpenSpan {
            tracer,
            name,
            context,
            parent: parent.copied(),
            parent_is_local: false,
            kind: SpanKind::Internal,
            from,
            attributes: Vec::new(),
            links: Vec::new(),
            status: Status::Unset,
        })))
    }

    /// Begins a child span now.
    pub fn begin(&self, name: impl Into<Cow<'static, str>>) -> Self {
        match self.0 {
            Some(_) => self.begin_at(name, SystemTime::now()),
            None => Self::noop(),
        }
    }

    /// Begins a child span with a given start time.
    pub fn begin_at(&self, name: impl Into<Cow<'static, str>>, at: SystemTime) -> Self {
        let Some(open) = &self.0 else {
            return Self::noop();
        };
        let mut child = open.tracer.begin_at(name, Some(&open.context), at);
        if let Some(child) = &mut child.0 {
            child.parent_is_local = true;
        }
        child
    }

    /// Returns whether the span is recorded; if not, its attributes need not be computed.
    pub fn is_recorded(&self) -> bool {
        self.0.is_some()
    }

    /// Returns the trace context to pass on; none if the span is not recorded.
    pub fn context(&self) -> Option<TraceContext> {
        self.0.as_ref().map(|open| open.context)
    }

    /// Marks the span as serving a call (kind *server*).
    pub fn server(mut self) -> Self {
        if let Some(open) = &mut self.0 {
            open.kind = SpanKind::Server;
        }
        self
    }

    /// Marks the span as a call to another system (kind *client*).
    pub fn client(mut self) -> Self {
        if let Some(open) = &mut self.0 {
            open.kind = SpanKind::Client;
        }
        self
    }

    /// Sets an attribute. Never a payload, a key or a secret.
    pub fn set(&mut self, key: &'static str, value: impl Into<Value>) {
        if let Some(open) = &mut self.0 {
            open.attributes.push(KeyValue::new(key, value));
        }
    }

    /// Sets an attribute from a value that is formatted only if the span is recorded.
    pub fn set_text(&mut self, key: &'static str, value: impl ToString) {
        if let Some(open) = &mut self.0 {
            open.attributes.push(KeyValue::new(key, value.to_string()));
        }
    }

    /// Links to another span.
    pub fn link(&mut self, other: Option<TraceContext>) {
        if let (Some(open), Some(other)) = (&mut self.0, other) {
            open.links.push(Link::with_context(exported(&other, false)));
        }
    }

    /// Sets the status to error, with the reason.
    pub fn failed(&mut self, why: impl Into<Cow<'static, str>>) {
        if let Some(open) = &mut self.0 {
            open.status = Status::error(why);
        }
    }

    /// Ends the span now.
    pub fn end(self) {
        drop(self);
    }

    /// Ends the span with a given end time.
    pub fn end_at(mut self, at: SystemTime) {
        if let Some(open) = self.0.take() {
            open.submit(at);
        }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some(open) = self.0.take() {
            open.submit(SystemTime::now());
        }
    }
}

impl OpenSpan {
    fn submit(self, at: SystemTime) {
        let tracer = self.tracer.clone();
        tracer.submit(|scope| {
            let mut links = SpanLinks::default();
            links.links = self.links;
            SpanData {
                span_context: exported(&self.context, false),
                parent_span_id: self
                    .parent
                    .map_or(SpanId::INVALID, |parent| parent.span.into()),
                parent_span_is_remote: self.parent.is_some() && !self.parent_is_local,
                span_kind: self.kind,
                name: self.name,
                start_time: self.from,
                // The clock may have been set back; a span must not end before it began.
                end_time: at.max(self.from),
                attributes: self.attributes,
                dropped_attributes_count: 0,
                events: SpanEvents::default(),
                links,
                status: self.status,
                instrumentation_scope: scope,
            }
        });
    }
}

fn exported(context: &TraceContext, remote: bool) -> SpanContext {
    let flags = TraceFlags::default().with_sampled(context.sampled);
    let (trace, span) = (context.trace.into(), context.span.into());
    SpanContext::new(trace, span, flags, remote, TraceState::NONE)
}
