//! How a worker is put together, and what is refused before it starts.

use crate::context::JobContext;
use crate::desk::Desk;
use crate::handler::Handlers;
use crate::outcome::{IntoOutcome, JobError};
use crate::shared::{Options, Shared};
use crate::source::JobSource;
use crate::worker::Worker;
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
    /// It has no queue.
    #[error("a worker needs a queue")]
    NoQueue,
    /// It has no handler.
    #[error("a worker needs a handler")]
    NoHandler,
    /// Two handlers for one kind.
    #[error("the kind `{0}` has two handlers")]
    TwoHandlers(String),
    /// A queue is named twice.
    #[error("the queue `{0}` is named twice")]
    TwoQueues(String),
    /// A name that cannot be one.
    #[error("the {what} `{name}` {problem}")]
    Name {
        /// What the name is of.
        what: &'static str,
        /// The name.
        name: String,
        /// What is wrong with it.
        problem: TextProblem,
    },
    /// A number of jobs that cannot work.
    #[error("{what} must be from {least} to {most}, is {is}")]
    Count {
        /// What it is.
        what: &'static str,
        /// The least that works.
        least: usize,
        /// The most that works.
        most: usize,
        /// What was given.
        is: usize,
    },
}

/// A worker to be; see [`Worker::of`].
pub struct WorkerBuilder {
    source: Arc<dyn JobSource>,
    queues: Vec<String>,
    name: Option<String>,
    concurrency: usize,
    prefetch: Option<usize>,
    prefetch_patience: Duration,
    lease: Option<Duration>,
    poll_interval: Duration,
    drain_timeout: Duration,
    cancel_grace: Duration,
    handlers: Handlers,
    kinds: Vec<String>,
    twice: Option<String>,
}

impl WorkerBuilder {
    pub(crate) fn new(source: Arc<dyn JobSource>) -> Self {
        Self {
            source,
            queues: Vec::new(),
            name: None,
            concurrency: 32,
            prefetch: None,
            prefetch_patience: Duration::from_millis(250),
            lease: None,
            poll_interval: Duration::from_secs(5),
            drain_timeout: Duration::from_secs(25),
            cancel_grace: Duration::from_secs(1),
            handlers: Handlers::default(),
            kinds: Vec::new(),
            twice: None,
        }
    }

    /// A queue to claim from. Several take turns.
    #[must_use]
    pub fn queue(mut self, name: impl Into<String>) -> Self {
        self.queues.push(name.into());
        self
    }

    /// The worker's name, which no other has or had. Made from host, process and chance unless told.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// How many jobs run at once; 32 unless told.
    #[must_use]
    pub fn concurrency(mut self, jobs: usize) -> Self {
        self.concurrency = jobs;
        self
    }

    /// How many jobs wait in the worker's hands, claimed, beside those that run; as many unless told. With none every job that ends costs a claim.
    #[must_use]
    pub fn prefetch(mut self, jobs: usize) -> Self {
        self.prefetch = Some(jobs);
        self
    }

    /// How long a claimed job may wait for its turn to run; 250 ms unless told. One that waits longer is behind slow handlers: it is given back to
    /// whoever is free, and no more are claimed ahead for a while. For handlers that slow a claim each costs nothing that matters.
    #[must_use]
    pub fn prefetch_patience(mut self, patience: Duration) -> Self {
        self.prefetch_patience = patience;
        self
    }

    /// How long a lease lasts, renewed every third of it; as long as the queue says unless told. Bounded to 100 ms and a day.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease::bounded(lease));
        self
    }

    /// How often to look for jobs though nothing rang; 5 s unless told. Only a fallback.
    #[must_use]
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.poll_interval = interval.max(Duration::from_millis(1));
        self
    }

    /// How long a worker that stops waits for handlers that run; 25 s unless told.
    #[must_use]
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.drain_timeout = timeout;
        self
    }

    /// How long a handler may go on after it was cancelled because the worker stops, to save what it can; 1 s unless told.
    #[must_use]
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.cancel_grace = grace;
        self
    }

    /// The handler of a kind of job. The payload is read as `T`; the answer is an [`Outcome`](crate::Outcome) or anything that can be written
    /// as JSON.
    ///
    /// A payload that is no `T` fails the job for good, with an error that says so. A panic fails the attempt. A handler that blocks its thread
    /// belongs into `tokio::task::spawn_blocking`.
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
            self.twice = Some(kind.clone());
        }
        self.kinds.push(kind);
        self
    }

    /// The handler of every kind that has none of its own. Without one, a job of such a kind is tried again later, maybe by a worker that knows it.
    #[must_use]
    pub fn other_kinds<T, F, Fut, O>(mut self, handler: F) -> Self
    where
        T: DeserializeOwned + Send + 'static,
        F: Fn(T, JobContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, JobError>> + Send + 'static,
        O: IntoOutcome,
    {
        self.handlers.set_other(handler);
        self
    }

    /// The worker, which has not begun yet.
    ///
    /// # Errors
    /// If something is missing, doubled or out of bounds.
    pub fn build(self) -> Result<Worker, BuildError> {
        let prefetch = self.prefetch.unwrap_or(self.concurrency);
        self.check(prefetch)?;
        let options = Options {
            queues: self.queues.into_iter().map(Arc::from).collect(),
            name: self.name.unwrap_or_else(fresh_name).into(),
            concurrency: self.concurrency,
            prefetch,
            prefetch_patience: self.prefetch_patience,
            lease: self.lease,
            poll_interval: self.poll_interval,
            drain_timeout: self.drain_timeout,
            cancel_grace: self.cancel_grace,
        };
        Ok(Worker::new(Shared {
            source: self.source,
            desk: Desk::new(options.concurrency, options.prefetch),
            options,
            handlers: self.handlers,
            stopping: CancellationToken::new(),
            shorter_lease: Notify::new(),
        }))
    }

    fn check(&self, prefetch: usize) -> Result<(), BuildError> {
        if self.queues.is_empty() {
            return Err(BuildError::NoQueue);
        }
        if self.handlers.is_empty() {
            return Err(BuildError::NoHandler);
        }
        if let Some(kind) = &self.twice {
            return Err(BuildError::TwoHandlers(kind.clone()));
        }
        let queues = self.queues.iter().map(|name| ("queue", name));
        let kinds = self.kinds.iter().map(|name| ("kind", name));
        let own = self.name.iter().map(|name| ("worker", name));
        for (what, name) in queues.chain(kinds).chain(own) {
            text::check(name, QUEUE_NAME_MAX_CHARS).map_err(|problem| BuildError::Name {
                what,
                name: name.clone(),
                problem,
            })?;
        }
        for (index, name) in self.queues.iter().enumerate() {
            if self.queues[..index].contains(name) {
                return Err(BuildError::TwoQueues(name.clone()));
            }
        }
        for (what, is, least) in [
            ("concurrency", self.concurrency, 1),
            ("prefetch", prefetch, 0),
        ] {
            if is < least || is > JOB_MAX_BATCH {
                return Err(BuildError::Count {
                    what,
                    least,
                    most: JOB_MAX_BATCH,
                    is,
                });
            }
        }
        Ok(())
    }
}

/// A name that no other worker has or had.
fn fresh_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host: String = host
        .trim()
        .chars()
        .filter(|c| !c.is_control())
        .take(50)
        .collect();
    let host = if host.is_empty() { "worker" } else { &host };
    let chance = fastrand::u64(..);
    format!("{host}-{}-{chance:016x}", std::process::id())
}
