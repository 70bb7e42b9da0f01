//! The spans and metrics of dispatch: a batch has a trace of its own; a request's spans are in its caller's trace and link to the batch. Decides
//! nothing.
//!
//! docs/operations/traces.md shows the tree of spans. Where one statement covers a step for many requests, each request's step carries the
//! statement's times and its name as `leasehold.in_statement`.

use super::{DispatcherOptions, Shared};
use leasehold_core::TraceContext;
use leasehold_engine::StartOutcome;
use leasehold_store::request::{ClaimedRequest, ReleaseKind};
use leasehold_telemetry::{DispatchFailure, Span, Telemetry};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

const CLAIM: &str = "request_claim";
const IN_STATEMENT: &str = "leasehold.in_statement";
const COLLECTION: &str = "db.collection.name";
const REQUEST: &str = "request";
const EXECUTION: &str = "execution";
const WORKSPACE: &str = "workspace";

/// The time in which a statement ran.
#[derive(Clone, Copy)]
pub(super) struct Period {
    from: SystemTime,
    to: SystemTime,
}

impl Period {
    /// Returns the period from `from` to now.
    pub(super) fn since(from: SystemTime) -> Self {
        Self {
            from,
            to: SystemTime::now(),
        }
    }
}

/// The trace of one claimed batch, from the claim until the outcome of its last request is written.
pub(super) struct BatchTrace {
    telemetry: Telemetry,
    requested: Instant,
    claim: Period,
    flow: Span,
    /// The span of the claim's statement.
    statement: Option<TraceContext>,
}

impl BatchTrace {
    pub(super) fn begin(
        shared: &Shared,
        size: usize,
        requested: Instant,
        claim: Period,
    ) -> Arc<Self> {
        let telemetry = shared.options.telemetry.clone();
        telemetry.metrics.batch_claimed(size);
        let mut flow = telemetry
            .tracer
            .begin_at("flow:queue_processing", None, claim.from);
        flow.set(
            "leasehold.batch_size",
            i64::try_from(size).unwrap_or(i64::MAX),
        );
        let step = flow.begin_at("step:claim_batch", claim.from);
        let mut query = step.begin_at("db:query", claim.from);
        query.set("leasehold.statement", CLAIM);
        let statement = query.context();
        query.end_at(claim.to);
        step.end_at(claim.to);
        shared.last_flow.set(flow.context());
        Arc::new(Self {
            telemetry,
            requested,
            claim,
            flow,
            statement,
        })
    }
}

impl Drop for BatchTrace {
    fn drop(&mut self) {
        let metrics = &self.telemetry.metrics;
        metrics.batch_finished(self.requested.elapsed(), self.flow.context());
    }
}

/// The trace of the last batch; releasing the lock is recorded as a step of it.
#[derive(Default)]
pub(super) struct LastFlow(Mutex<Option<TraceContext>>);

impl LastFlow {
    fn set(&self, flow: Option<TraceContext>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = flow;
    }

    /// Clears the trace: there is no lock left to release.
    pub(super) fn clear(&self) {
        self.set(None);
    }
}

/// Records that the lock was released.
pub(super) fn lock_released(shared: &Shared, releasing: Period) {
    let last = *shared
        .last_flow
        .0
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if last.is_some() {
        let tracer = &shared.options.telemetry.tracer;
        let step = tracer.begin_at("step:release_lock", last.as_ref(), releasing.from);
        step.end_at(releasing.to);
    }
}

/// The spans of one request of a batch.
pub(super) struct RequestTrace {
    batch: Arc<BatchTrace>,
    /// None if the trace is not recorded.
    spans: Option<Box<Spans>>,
}

struct Spans {
    process: Span,
    dispatch: Span,
}

impl RequestTrace {
    /// Begins the spans of a claimed request, including the steps that the claim's statement has already done.
    pub(super) fn begin(batch: &Arc<BatchTrace>, claimed: &ClaimedRequest) -> Self {
        let unrecorded = |batch: &Arc<BatchTrace>| Self {
            batch: batch.clone(),
            spans: None,
        };
        let tracer = &batch.telemetry.tracer;
        if !tracer.is_on() {
            return unrecorded(batch);
        }
        let caller = claimed.trace_context.as_deref();
        let caller: Option<TraceContext> = caller.and_then(|trace| trace.parse().ok());
        let from = batch.claim.from;
        let mut process = tracer.begin_at("step:process_item", caller.as_ref(), from);
        if !process.is_recorded() {
            return unrecorded(batch);
        }
        process.link(batch.flow.context());
        process.set_text("leasehold.request", claimed.id);
        process.set_text("leasehold.workspace", claimed.workspace);
        process.set_text("leasehold.definition", claimed.definition);
        process.set_text("leasehold.execution", claimed.execution);
        process.set("leasehold.attempt", i64::from(claimed.attempt_count) + 1);
        let claimed = [("db:update", REQUEST)];
        batch.admitted(&process, "step:mark_claimed", &claimed);
        let checked = [("db:query", WORKSPACE), ("db:query", EXECUTION)];
        batch.admitted(&process, "step:check_capacity", &checked);
        let dispatch = process.begin_at("step:dispatch_temporal", from);
        batch.part(&dispatch, "db:insert", EXECUTION);
        batch.part(&dispatch, "db:update", REQUEST);
        Self {
            batch: batch.clone(),
            spans: Some(Box::new(Spans { process, dispatch })),
        }
    }

    /// Begins the span of the call to the engine.
    pub(super) fn begin_start(&self, engine: &str) -> Span {
        let Some(spans) = &self.spans else {
            return Span::noop();
        };
        match engine {
            "temporal" => spans.dispatch.begin("temporal:start_workflow").client(),
            _ => spans.dispatch.begin("engine:start"),
        }
    }

    /// Records that the execution was started and DISPATCHED was written.
    pub(super) fn dispatched(
        &mut self,
        claimed: &ClaimedRequest,
        options: &DispatcherOptions,
        writing: Period,
    ) {
        let due = claimed.created_at.max(claimed.run_at);
        let claimed_after = claimed.lease_expires_at.duration_since(due).as_secs_f64()
            - options.claim_lease.as_secs_f64();
        let waited = claimed_after + self.batch.requested.elapsed().as_secs_f64();
        let waited = Duration::try_from_secs_f64(waited).unwrap_or_default();
        let trace = self
            .spans
            .as_ref()
            .and_then(|spans| spans.process.context());
        let metrics = &self.batch.telemetry.metrics;
        metrics.dispatched(claimed.workspace, claimed.attempt_count + 1, waited, trace);
        if let Some(spans) = &self.spans {
            statement(&spans.dispatch, writing);
        }
        self.end("step:mark_dispatched", writing, "dispatched");
    }

    /// Records that the request returned to PENDING, after a failed start if there is an error.
    pub(super) fn released(&mut self, kind: ReleaseKind, error: Option<&str>, writing: Period) {
        if let Some(error) = error {
            let reason = match kind {
                ReleaseKind::Refused { .. } => DispatchFailure::Refused,
                ReleaseKind::Unknown => DispatchFailure::Unknown,
                ReleaseKind::NotStarted => DispatchFailure::NotSent,
            };
            self.batch.telemetry.metrics.dispatch_failed(reason);
            self.set_error(error);
        }
        self.end("step:release_item", writing, "released");
    }

    /// Records that the request failed permanently without having been started.
    pub(super) fn failed(
        &mut self,
        claimed: &ClaimedRequest,
        error: Option<&str>,
        writing: Period,
    ) {
        let metrics = &self.batch.telemetry.metrics;
        metrics.attempted(claimed.attempt_count + 1);
        self.set_error(error.unwrap_or("cancelled"));
        self.end("step:mark_failed", writing, "failed");
    }

    /// Records that the claim was lost to another dispatcher.
    pub(super) fn lost(&mut self) {
        self.batch.telemetry.metrics.request_leases_lost(1);
        self.abandoned("claim lost");
    }

    /// Records that another process resolves the request.
    pub(super) fn abandoned(&mut self, why: &'static str) {
        if let Some(mut spans) = self.spans.take() {
            spans.dispatch.failed(why);
            spans.process.failed(why);
            spans.process.set("leasehold.outcome", "lost");
        }
    }

    fn set_error(&mut self, error: &str) {
        if let Some(spans) = &mut self.spans {
            spans.dispatch.failed(error.to_owned());
            spans.process.failed(error.to_owned());
        }
    }

    fn end(&mut self, step: &'static str, writing: Period, outcome: &'static str) {
        let Some(spans) = self.spans.take() else {
            return;
        };
        let Spans {
            mut process,
            dispatch,
        } = *spans;
        dispatch.end_at(writing.to);
        let step = process.begin_at(step, writing.from);
        statement(&step, writing);
        step.end_at(writing.to);
        process.set("leasehold.outcome", outcome);
        process.end_at(writing.to);
    }
}

impl BatchTrace {
    /// Records a step that the claim's statement did.
    fn admitted(&self, item: &Span, step: &'static str, parts: &[(&'static str, &'static str)]) {
        let step = item.begin_at(step, self.claim.from);
        for (part, of) in parts {
            self.part(&step, part, of);
        }
        step.end_at(self.claim.to);
    }

    fn part(&self, step: &Span, name: &'static str, of: &'static str) {
        let mut part = step.begin_at(name, self.claim.from);
        part.set(COLLECTION, of);
        part.set(IN_STATEMENT, CLAIM);
        part.link(self.statement);
        part.end_at(self.claim.to);
    }
}

fn statement(step: &Span, writing: Period) {
    let mut update = step.begin_at("db:update", writing.from);
    update.set(COLLECTION, REQUEST);
    update.end_at(writing.to);
}

/// Returns the trace context for the engine: that of this call, or the caller's if the call is not recorded.
pub(super) fn outgoing_context(call: &Span, claimed: &ClaimedRequest) -> Option<String> {
    let here = call.context().map(|here| here.to_string());
    here.or_else(|| claimed.trace_context.clone())
}

/// Records the engine's answer on the span of the call.
pub(super) fn answered(mut call: Span, outcome: &StartOutcome) {
    if !call.is_recorded() {
        return;
    }
    let (outcome, error) = match outcome {
        StartOutcome::Started => ("started", None),
        StartOutcome::AlreadyStarted { .. } => ("already_started", None),
        StartOutcome::Refused { error } => ("refused", Some(error)),
        StartOutcome::Unknown { error } => ("unknown", Some(error)),
        StartOutcome::Unavailable { error, .. } => ("unavailable", Some(error)),
    };
    call.set("leasehold.outcome", outcome);
    if let Some(error) = error {
        call.failed(error.clone());
    }
}
