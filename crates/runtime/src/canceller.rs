//! Delivers cancel requests to the engine. The request ends when the engine reports that its execution ended.

use crate::error::{Error, Result};
use async_trait::async_trait;
use futures::StreamExt;
use leasehold_core::RequestId;
use leasehold_engine::{Engine, StopAck};
use leasehold_service::{FailureStreak, Next, Service};
use leasehold_store::notification::Notification;
use leasehold_store::request::CancelRequest;
use leasehold_store::{ErrorKind, Store};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How cancel requests are delivered.
#[derive(Clone, Debug)]
pub struct CancellerOptions {
    /// Time between rounds without a notification.
    pub interval: Duration,
    /// How many cancel requests one round delivers.
    pub batch: u32,
    /// How many calls to the engine run at once.
    pub concurrency: usize,
}

impl Default for CancellerOptions {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(5),
            batch: 200,
            concurrency: 16,
        }
    }
}

/// Delivers cancel requests to the engine.
pub struct Canceller {
    store: Arc<dyn Store>,
    engine: Arc<dyn Engine>,
    options: CancellerOptions,
    /// What the last round listed.
    last: Mutex<HashSet<RequestId>>,
    failures: Mutex<FailureStreak>,
}

impl Canceller {
    /// Creates a canceller for this engine.
    pub fn new(store: Arc<dyn Store>, engine: Arc<dyn Engine>, options: CancellerOptions) -> Self {
        Self {
            store,
            engine,
            options,
            last: Mutex::default(),
            failures: Mutex::new(
                FailureStreak::of("canceller").action("deliver some cancellations"),
            ),
        }
    }

    /// Whether the last round did not list all of these. Those that fail, and those whose rows are locked so that no acknowledgement is written, are listed
    /// again.
    fn is_new(&self, listed: HashSet<RequestId>) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = !listed.is_subset(&last);
        *last = listed;
        is_new
    }

    /// Logs failures that concern single requests, when they begin and end.
    fn report(&self, one_failed: Option<Error>) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        match one_failed {
            Some(error) => {
                // The next round tries again in any case.
                let _wait = failures.failed(&error);
            }
            None => failures.succeeded(),
        }
    }

    /// Delivers one cancel request and acknowledges it in the store, independent of the others.
    async fn deliver(&self, cancel: CancelRequest) -> Result<()> {
        let reason = "cancelled through Leasehold";
        let ack = if cancel.force {
            self.engine.terminate(cancel.execution, reason).await?
        } else {
            self.engine.cancel(cancel.execution, reason).await?
        };
        match ack {
            StopAck::Acknowledged => {
                tracing::info!(request = %cancel.request, execution = %cancel.execution, force = cancel.force,
                    "cancellation delivered to the engine");
            }
            StopAck::NotFound => {
                tracing::warn!(request = %cancel.request, execution = %cancel.execution,
                    "engine does not know the execution to cancel; the full sweep decides");
            }
        }
        self.store.request_cancel_ack(&[cancel]).await?;
        Ok(())
    }
}

/// Whether the failure concerns one request only, so that others can be cancelled.
fn concerns_one(error: &Error) -> bool {
    match error {
        Error::Engine(error) => matches!(error, leasehold_engine::Error::Failed(_)),
        Error::Store(error) => matches!(error.kind, ErrorKind::Contended(_)),
        Error::Panicked(_) => false,
    }
}

#[async_trait]
impl Service for Canceller {
    type Error = Error;

    fn name(&self) -> &'static str {
        "canceller"
    }

    async fn run_once(&self) -> Result<Next> {
        let cancels = self.store.request_cancel_list(self.options.batch).await?;
        let is_full = cancels.len() >= self.options.batch as usize;
        let any = !cancels.is_empty();
        let is_new = self.is_new(cancels.iter().map(|cancel| cancel.request).collect());
        let answers: Vec<_> = futures::stream::iter(cancels)
            .map(|cancel| self.deliver(cancel))
            .buffer_unordered(self.options.concurrency.max(1))
            .collect()
            .await;
        if any {
            self.store.notify(Notification::Ended).await?;
        }
        let (mut outage, mut one_failed) = (None, None);
        for error in answers.into_iter().filter_map(Result::err) {
            if concerns_one(&error) {
                one_failed.get_or_insert(error);
            } else {
                outage.get_or_insert(error);
            }
        }
        self.report(one_failed);
        match outage {
            Some(error) => Err(error),
            None if is_full && is_new => Ok(Next::Now),
            None => Ok(Next::After(self.options.interval)),
        }
    }

    async fn woken(&self) {
        self.store.notification_wait(Notification::Cancel).await;
    }
}
