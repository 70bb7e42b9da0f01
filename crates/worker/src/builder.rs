//! The worker's builder and its checks.

use crate::context::JobContext;
use crate::handler::Handlers;
use crate::outcome::{IntoOutcome, JobError};
use crate::shared::{Options, Shared};
use crate::source::JobSource;
use crate::unknown_kinds::UnknownKinds;
use crate::worker::Worker;
use crate::worker_state::WorkerState;
use leasehold_core::lease;
use leasehold_core::limits::{JOB_MAX_BATCH, QUEUE_NAME_MAX_CHARS};
use leasehold_core::text::{self, TextProblem};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Why a worker cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BuildError {
    /// No queue was given.
    #[error("failed to build the worker: no queue; add one with `queue`")]
    NoQueue,
    /// No handler was given.
    #[error("failed to build the worker: no handler; add one with `handler` or `default_handler`")]
    NoHandler,
    /// A kind has two handlers.
    #[error("failed to build the worker: kind `{0}` has two handlers")]
    DuplicateHandler(String),
    /// A queue was given twice.
    #[error("failed to build the worker: queue `{0}` was given twice")]
    DuplicateQueue(String),
    /// The name of a queue, a kind or the worker is invalid.
    #[error("failed to build the worker: {what} name `{name}` {problem}")]
    InvalidName {
        /// `queue`, `kind` or `worker`.
        what: &'static str,
        /// The name.
        name: String,
        /// Why it is invalid.
        problem: TextProblem,
    },
    /// A number of jobs is out of range.
    #[error("failed to build the worker: {option} is {value}, must be from {min} to {max}")]
    OutOfRange {
        /// The builder's method.
        option: &'static str,
        /// The smallest valid value.
        min: usize,
        /// The largest valid value.
        max: usize,
        /// The value that was given.
        value: usize,
    },
}

/// Builds a [`Worker`]; see [`Worker::builder`].
pub struct WorkerBuilder {
    source: Arc<dyn JobSource>,
    queues: Vec<String>,
    name: Option<String>,
    concurrency: usize,
    prefetch: Option<usize>,
    prefetch_timeout: Duration,
    lease: Option<Duration>,
    poll_interval: Duration,
    drain_timeout: Duration,
    cancel_grace: Duration,
    handlers: Handlers,
    kinds: Vec<String>,
    duplicate_handler: Option<String>,
}

impl WorkerBuilder {
    pub(crate) fn new(source: Arc<dyn JobSource>) -> Self {
        Self {
            source,
            queues: Vec::new(),
            name: None,
            concurrency: 32,
            prefetch: None,
            prefetch_timeout: Duration::from_millis(250),
            lease: None,
            poll_interval: Duration::from_secs(5),
            drain_timeout: Duration::from_secs(25),
            cancel_grace: Duration::from_secs(1),
            handlers: Handlers::default(),
            kinds: Vec::new(),
            duplicate_handler: None,
        }
    }

    /// Adds a queue to claim from. The worker claims from several queues in turn.
    #[must_use]
    pub fn queue(mut self, name: impl Into<String>) -> Self {
        self.queues.push(name.into());
        self
    }

    /// Sets the worker's name, which no other worker may have or have had. Default: host name, process id and a random number.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets how many jobs run at once. Default: 32.
    #[must_use]
    pub fn concurrency(mut self, jobs: usize) -> Self {
        self.concurrency = jobs;
        self
    }

    /// Sets how many jobs are claimed beyond those that run. Default: the concurrency. With 0 every finished job costs a claim.
    #[must_use]
    pub fn prefetch(mut self, jobs: usize) -> Self {
        self.prefetch = Some(jobs);
        self
    }

    /// Sets how long a prefetched job may wait for a runner. Default: 250 ms. After that the worker returns its prefetched jobs to the queue
    /// and stops prefetching for a while: its handlers are slow, so a claim per job costs little in comparison.
    #[must_use]
    pub fn prefetch_timeout(mut self, timeout: Duration) -> Self {
        self.prefetch_timeout = timeout;
        self
    }

    /// Sets the length of leases, renewed three times per length. Default: the queue's setting. Clamped to 100 ms … 1 day.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease::bounded(lease));
        self
    }

    /// Sets how often to poll without a notification. Default: 5 s. Only a fallback.
    #[must_use]
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.poll_interval = interval.max(Duration::from_millis(1));
        self
    }

    /// Sets how long a stopping worker waits for running handlers. Default: 25 s.
    #[must_use]
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.drain_timeout = timeout;
        self
    }

    /// Sets how long a handler may run after a shutdown cancelled it, to save its progress. Default: 1 s.
    #[must_use]
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.cancel_grace = grace;
        self
    }

    /// Adds the handler of a kind of job. The payload is deserialized as `T`; the handler returns an [`Outcome`](crate::Outcome) or a result
    /// that serializes to JSON.
    ///
    /// A payload that is not a `T` fails the job permanently. A panic fails the attempt. Run blocking code in
    /// `tokio::task::spawn_blocking`.
    #[must_use]
    pub fn handler<T, F, Fut, O>(mut self, kind: impl Into<String>, handler: F) -> Self
    where
        T: DeserializeOwned + Send + 'static,
        F: Fn(T, JobContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, JobError>> + Send + 'static,
        O: IntoOutcome,
    {
        let kind = kind.into();
        if !self.handlers.add(&kind, handler) {
            self.duplicate_handler = Some(kind.clone());
        }
        self.kinds.push(kind);
        self
    }

    /// Sets the handler of every kind without its own. Without it such a job is snoozed for up to a minute, which counts no attempt, until a worker that has a
    /// handler claims it.
    #[must_use]
    pub fn default_handler<T, F, Fut, O>(mut self, handler: F) -> Self
    where
        T: DeserializeOwned + Send + 'static,
        F: Fn(T, JobContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, JobError>> + Send + 'static,
        O: IntoOutcome,
    {
        self.handlers.set_default(handler);
        self
    }

    /// Builds the worker without starting it.
    ///
    /// # Errors
    /// Fails if an option is missing, duplicate or out of range.
    pub fn build(self) -> Result<Worker, BuildError> {
        let prefetch = self.prefetch.unwrap_or(self.concurrency);
        self.check(prefetch)?;
        let options = Options {
            queues: self.queues.into_iter().map(Arc::from).collect(),
            name: self.name.unwrap_or_else(unique_name).into(),
            concurrency: self.concurrency,
            prefetch,
            prefetch_timeout: self.prefetch_timeout,
            lease: self.lease,
            poll_interval: self.poll_interval,
            drain_timeout: self.drain_timeout,
            cancel_grace: self.cancel_grace,
        };
        Ok(Worker::new(Shared {
            source: self.source,
            state: WorkerState::new(options.concurrency, options.prefetch),
            options,
            handlers: self.handlers,
            unknown_kinds: UnknownKinds::default(),
            stopping: CancellationToken::new(),
            shorter_lease: Notify::new(),
            old_lease: Notify::new(),
        }))
    }

    fn check(&self, prefetch: usize) -> Result<(), BuildError> {
        if self.queues.is_empty() {
            return Err(BuildError::NoQueue);
        }
        if self.handlers.is_empty() {
            return Err(BuildError::NoHandler);
        }
        if let Some(kind) = &self.duplicate_handler {
            return Err(BuildError::DuplicateHandler(kind.clone()));
        }
        let queues = self.queues.iter().map(|name| ("queue", name));
        let kinds = self.kinds.iter().map(|name| ("kind", name));
        let own = self.name.iter().map(|name| ("worker", name));
        for (what, name) in queues.chain(kinds).chain(own) {
            text::check(name, QUEUE_NAME_MAX_CHARS).map_err(|problem| BuildError::InvalidName {
                what,
                name: name.clone(),
                problem,
            })?;
        }
        for (index, name) in self.queues.iter().enumerate() {
            if self.queues[..index].contains(name) {
                return Err(BuildError::DuplicateQueue(name.clone()));
            }
        }
        for (option, value, min) in [
            ("concurrency", self.concurrency, 1),
            ("prefetch", prefetch, 0),
        ] {
            if value < min || value > JOB_MAX_BATCH {
                return Err(BuildError::OutOfRange {
                    option,
                    min,
                    max: JOB_MAX_BATCH,
                    value,
                });
            }
        }
        Ok(())
    }
}

/// Generates a worker name that no other worker has or had.
fn unique_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host: String = host
        .trim()
        .chars()
        .filter(|c| !c.is_control())
        .take(50)
        .collect();
    let host = if host.is_empty() { "worker" } else { &host };
    let random = fastrand::u64(..);
    format!("{host}-{}-{random:016x}", std::process::id())
}
