//! What all tasks of one worker have in common.

use crate::desk::Desk;
use crate::handler::Handlers;
use crate::held::Held;
use crate::source::JobSource;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// How a worker works; the builder's methods say what each is.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) queues: Vec<Arc<str>>,
    pub(crate) name: Arc<str>,
    pub(crate) concurrency: usize,
    pub(crate) prefetch: usize,
    pub(crate) prefetch_patience: Duration,
    pub(crate) lease: Option<Duration>,
    pub(crate) poll_interval: Duration,
    pub(crate) drain_timeout: Duration,
    pub(crate) cancel_grace: Duration,
}

pub(crate) struct Shared {
    pub(crate) source: Arc<dyn JobSource>,
    pub(crate) options: Options,
    pub(crate) handlers: Handlers,
    pub(crate) desk: Desk,
    /// Cancelled when the worker begins to stop.
    pub(crate) stopping: CancellationToken,
    /// Tells the heart that a lease is shorter than those before.
    pub(crate) shorter_lease: Notify,
}

impl Shared {
    /// The store said that the lease is lost, or it must have run out.
    pub(crate) fn lose(&self, held: &Held, why: &'static str) {
        if self.desk.lose(held) {
            tracing::warn!(job = %held.job.id, queue = %held.queue, kind = held.job.kind, token = held.job.token,
                attempt = held.job.attempt, worker = %self.options.name, why, "lease lost; the handler is stopped and its result dropped");
        }
    }
}
