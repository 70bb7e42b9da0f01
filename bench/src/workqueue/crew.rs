//! One worker as the product has it, whose handler does nothing but tell that it was started.

use super::jobs::{KIND, Payload, QUEUE};
use anyhow::Result;
use clap::Args;
use leasehold_runtime::StoreSource;
use leasehold_store::Store;
use leasehold_worker::{JobContext, Stats, Worker, WorkerHandle};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Notify;

/// How the worker is set up.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Hands {
    /// Jobs the worker runs at once
    #[arg(long, default_value_t = 250)]
    pub(crate) concurrency: usize,
    /// Jobs the worker claims beyond those
    #[arg(long, default_value_t = 750)]
    pub(crate) prefetch: usize,
    /// Connections of the worker to its database
    #[arg(long, default_value_t = 4)]
    pub(crate) connections: usize,
}

/// A worker at work.
pub(crate) struct Crew {
    handle: WorkerHandle,
    started: Arc<Started>,
}

/// Handlers that were started.
#[derive(Default)]
struct Started {
    count: AtomicU64,
    /// Whoever waits is told at this count.
    target: AtomicU64,
    reached: Notify,
}

impl Crew {
    /// `seen` is called by each handler with the payload's number, first thing.
    pub(crate) fn start<F>(store: Arc<dyn Store>, hands: Hands, seen: F) -> Result<Self>
    where
        F: Fn(u64) + Clone + Send + Sync + 'static,
    {
        let started = Arc::new(Started::default());
        let tally = started.clone();
        let handle = Worker::of(Arc::new(StoreSource::new(store)))
            .queue(QUEUE)
            .concurrency(hands.concurrency)
            .prefetch(hands.prefetch)
            .handler(KIND, move |payload: Payload, _: JobContext| {
                seen(payload.at);
                let count = tally.count.fetch_add(1, Ordering::AcqRel) + 1;
                if count == tally.target.load(Ordering::Acquire) {
                    tally.reached.notify_one();
                }
                async { Ok(()) }
            })
            .build()?
            .start();
        Ok(Self { handle, started })
    }

    /// Returns when so many handlers have been started, now or before.
    pub(crate) async fn until(&self, count: u64) {
        self.started.target.store(count, Ordering::Release);
        // A bell of an earlier wait may still ring.
        while self.started.count.load(Ordering::Acquire) < count {
            self.started.reached.notified().await;
        }
    }

    /// Handlers started so far.
    pub(crate) fn count(&self) -> u64 {
        self.started.count.load(Ordering::Acquire)
    }

    /// Writes down the last ends, gives back what was not started, and tells.
    pub(crate) async fn stop(self) -> Stats {
        self.handle.stop().await
    }
}
