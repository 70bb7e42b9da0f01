//! A span: what happened, from when to when, as part of what. One that nobody records holds nothing and costs nothing.

use super::Tracer;
use leasehold_core::TraceContext;
use opentelemetry::trace::{Link, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceState};
use opentelemetry::{KeyValue, Value};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use std::borrow::Cow;
use std::time::SystemTime;

/// A span that has begun. It ends when it is dropped, unless it was ended before.
#[must_use = "a span that is dropped at once has no length"]
#[derive(Default)]
pub struct Span(Option<Box<Open>>);

struct Open {
    tracer: Tracer,
    name: Cow<'static, str>,
    context: TraceContext,
    parent: Option<TraceContext>,
    /// Whether the parent is of this process.
    inner: bool,
    kind: SpanKind,
    from: SystemTime,
    attributes: Vec<KeyValue>,
    links: Vec<Link>,
    status: Status,
}

impl Span {
    /// One that nobody records.
    pub fn unseen() -> Self {
        Self(None)
    }

    pub(super) fn open(
        tracer: Tracer,
        name: Cow<'static, str>,
        context: TraceContext,
        parent: Option<&TraceContext>,
        from: SystemTime,
    ) -> Self {
        Self(Some(Box::new(Open {
            tracer,
            name,
            context,
            parent: parent.copied(),
            inner: false,
            kind: SpanKind::Internal,
            from,
            attributes: Vec::new(),
            links: Vec::new(),
            status: Status::Unset,
        })))
    }

    /// Begins a part of it now.
    pub fn begin(&self, name: impl Into<Cow<'static, str>>) -> Self {
        match self.0 {
            Some(_) => self.begin_at(name, SystemTime::now()),
            None => Self::unseen(),
        }
    }

    /// Begins a part of it that began then.
    pub fn begin_at(&self, name: impl Into<Cow<'static, str>>, at: SystemTime) -> Self {
        let Some(open) = &self.0 else {
            return Self::unseen();
        };
        let mut part = open.tracer.begin_at(name, Some(&open.context), at);
        if let Some(part) = &mut part.0 {
            part.inner = true;
        }
        part
    }

    /// Whether it is recorded: what is only for it need not be found out otherwise.
    pub fn is_recorded(&self) -> bool {
        self.0.is_some()
    }

    /// Where it is, for those who go on from here; none if it is not recorded.
    pub fn context(&self) -> Option<TraceContext> {
        self.0.as_ref().map(|open| open.context)
    }

    /// It answers a call from outside.
    pub fn serves(mut self) -> Self {
        if let Some(open) = &mut self.0 {
            open.kind = SpanKind::Server;
        }
        self
    }

    /// It is a call to somebody outside.
    pub fn calls(mut self) -> Self {
        if let Some(open) = &mut self.0 {
            open.kind = SpanKind::Client;
        }
        self
    }

    /// Says something about it. Never a payload, a key or a secret.
    pub fn set(&mut self, key: &'static str, value: impl Into<Value>) {
        if let Some(open) = &mut self.0 {
            open.attributes.push(KeyValue::new(key, value));
        }
    }

    /// Says something about it that takes work to say.
    pub fn set_text(&mut self, key: &'static str, value: impl ToString) {
        if let Some(open) = &mut self.0 {
            open.attributes.push(KeyValue::new(key, value.to_string()));
        }
    }

    /// Points at a span of another trace, or of another part of this one.
    pub fn link(&mut self, other: Option<TraceContext>) {
        if let (Some(open), Some(other)) = (&mut self.0, other) {
            open.links.push(Link::with_context(exported(&other, false)));
        }
    }

    /// Says that it failed, and why.
    pub fn failed(&mut self, why: impl Into<Cow<'static, str>>) {
        if let Some(open) = &mut self.0 {
            open.status = Status::error(why);
        }
    }

    /// Ends it now.
    pub fn end(self) {
        drop(self);
    }

    /// Ends it as of then.
    pub fn end_at(mut self, at: SystemTime) {
        if let Some(open) = self.0.take() {
            open.give(at);
        }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some(open) = self.0.take() {
            open.give(SystemTime::now());
        }
    }
}

impl Open {
    fn give(self, at: SystemTime) {
        let tracer = self.tracer.clone();
        tracer.give(|scope| {
            let mut links = SpanLinks::default();
            links.links = self.links;
            SpanData {
                span_context: exported(&self.context, false),
                parent_span_id: self
                    .parent
                    .map_or(SpanId::INVALID, |parent| parent.span.into()),
                parent_span_is_remote: self.parent.is_some() && !self.inner,
                span_kind: self.kind,
                name: self.name,
                start_time: self.from,
                // A clock that was set back must not make it end before it began.
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
