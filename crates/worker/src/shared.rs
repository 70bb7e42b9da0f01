//! The data that all tasks of one worker share.

use crate::handler::Handlers;
use crate::leased_job::LeasedJob;
use crate::source::JobSource;
use crate::unknown_kinds::UnknownKinds;
use crate::worker_state::WorkerState;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// A worker's options; the builder's methods describe each.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) queues: Vec<Arc<str>>,
    pub(crate) name: Arc<str>,
    pub(crate) concurrency: usize,
    pub(crate) prefetch: usize,
    pub(crate) prefetch_timeout: Duration,
    pub(crate) lease: Option<Duration>,
    pub(crate) poll_interval: Duration,
    pub(crate) drain_timeout: Duration,
    pub(crate) cancel_grace: Duration,
}

pub(crate) struct Shared {
    pub(crate) source: Arc<dyn JobSource>,
    pub(crate) options: Options,
    pub(crate) handlers: Handlers,
    pub(crate) unknown_kinds: UnknownKinds,
    pub(crate) state: WorkerState,
    /// Cancelled when the worker begins to stop.
    pub(crate) stopping: CancellationToken,
    /// Notifies the heartbeat task of a lease shorter than all before.
    pub(crate) shorter_lease: Notify,
    /// Requests a heartbeat at once, for leases that may end before the next one.
    pub(crate) old_lease: Notify,
}

impl Shared {
    /// Cancels the handler of a job whose lease the store rejected, or whose lease expired by the local clock.
    pub(crate) fn lose_lease(&self, job: &LeasedJob, reason: &'static str) {
        if self.state.lose_lease(job) {
            tracing::warn!(job = %job.claimed.id, queue = %job.queue, kind = job.claimed.kind, token = job.claimed.token,
                attempt = job.claimed.attempt, worker = %self.options.name, reason, "lease lost; handler cancelled");
        }
    }
}
