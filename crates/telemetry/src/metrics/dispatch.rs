//! Counters of the dispatcher and of the trace exporter. Defines no metric.

use super::Metrics;
use super::catalog::TraceId;
use super::labels::{Outcome, Reason, TaskName};
use leasehold_core::TraceContext;
use leasehold_core::WorkspaceId;
use std::time::{Duration, SystemTime};

/// Why a start failed that will be retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DispatchFailure {
    /// The engine rejected it.
    Refused,
    /// It may have started.
    Unknown,
    /// It was not sent.
    NotSent,
}

impl Metrics {
    /// Counts a claim sent by the dispatcher.
    pub fn dispatch_cycle(&self) {
        self.cycles.inc();
    }

    /// Records the size of a claimed batch.
    pub fn batch_claimed(&self, size: usize) {
        #[expect(clippy::cast_precision_loss, reason = "a batch is small")]
        self.batch_size.observe(size as f64, None, None);
    }

    /// Records the time from the claim of a batch until the outcome of its last request was written.
    pub fn batch_finished(&self, took: Duration, trace: Option<TraceContext>) {
        self.batch_seconds
            .observe(took.as_secs_f64(), exemplar(trace), now(trace));
    }

    /// Counts workspaces that reached their limit while their requests were waiting.
    pub fn workspaces_at_capacity(&self, workspaces: usize) {
        self.at_capacity.inc_by(workspaces as u64);
    }

    /// Counts an execution started in the engine, with its attempts and its wait since the request became due.
    pub fn dispatched(
        &self,
        workspace: WorkspaceId,
        attempts: u32,
        waited: Duration,
        trace: Option<TraceContext>,
    ) {
        self.dispatched.inc();
        self.attempted(attempts);
        let waited = waited.as_secs_f64();
        self.wait.observe(waited, exemplar(trace), now(trace));
        self.workspace_waited(workspace, waited);
    }

    /// Counts a failed start that will be retried.
    pub fn dispatch_failed(&self, reason: DispatchFailure) {
        let reason = match reason {
            DispatchFailure::Refused => "refused",
            DispatchFailure::Unknown => "unknown",
            DispatchFailure::NotSent => "not_sent",
        };
        self.dispatch_failures
            .get_or_create(&Reason { reason })
            .inc();
    }

    /// Counts a panic of a task that was caught.
    pub fn task_panicked(&self, task: &'static str) {
        self.task_panics.get_or_create(&TaskName { task }).inc();
    }

    /// Records the attempts of a request that was started or failed permanently.
    pub fn attempted(&self, attempts: u32) {
        self.attempts.observe(f64::from(attempts), None, None);
    }

    pub(crate) fn spans_exported(&self, count: u64) {
        self.count_spans("exported", count);
    }

    pub(crate) fn spans_failed(&self, count: u64) {
        self.count_spans("failed", count);
    }

    fn count_spans(&self, outcome: &'static str, count: u64) {
        self.spans.get_or_create(&Outcome { outcome }).inc_by(count);
    }
}

/// Returns the label of an exemplar.
pub(super) fn exemplar(trace: Option<TraceContext>) -> Option<TraceId> {
    trace.map(|trace| TraceId {
        trace_id: trace.trace_id(),
    })
}

pub(super) fn now(trace: Option<TraceContext>) -> Option<SystemTime> {
    trace.map(|_| SystemTime::now())
}
