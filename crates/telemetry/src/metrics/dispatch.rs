//! What the dispatcher and the exporter of traces count. Defines no metric.

use super::Metrics;
use super::book::TraceId;
use super::labels::{Outcome, Reason};
use leasehold_core::TraceContext;
use leasehold_core::WorkspaceId;
use std::time::{Duration, SystemTime};

/// Why a start failed that is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DispatchFailure {
    /// The engine refused it.
    Refused,
    /// Nobody knows whether it has started.
    Unknown,
    /// It was not sent.
    NotSent,
}

impl Metrics {
    /// The dispatcher looks for requests to admit.
    pub fn cycle(&self) {
        self.cycles.inc();
    }

    /// A claim brought so many requests.
    pub fn batch_claimed(&self, size: usize) {
        #[expect(clippy::cast_precision_loss, reason = "a batch is small")]
        self.batch_size.observe(size as f64, None, None);
    }

    /// What became of the last request of a batch was written down so long after its claim.
    pub fn batch_settled(&self, took: Duration, trace: Option<TraceContext>) {
        self.batch_seconds
            .observe(took.as_secs_f64(), example(trace), now(trace));
    }

    /// So many workspaces became full while requests of theirs were waiting.
    pub fn became_full(&self, workspaces: usize) {
        self.at_capacity.inc_by(workspaces as u64);
    }

    /// An execution was started in the engine, with so many attempts, so long after its request could have been claimed.
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
        self.wait.observe(waited, example(trace), now(trace));
        self.workspace_waited(workspace, waited);
    }

    /// A start failed that is tried again.
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

    /// A request was started, or failed for good before that, with so many attempts.
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

/// The label of an exemplar.
pub(super) fn example(trace: Option<TraceContext>) -> Option<TraceId> {
    trace.map(|trace| TraceId {
        trace_id: trace.trace_id(),
    })
}

pub(super) fn now(trace: Option<TraceContext>) -> Option<SystemTime> {
    trace.map(|_| SystemTime::now())
}
