//! A Leasehold worker whose handler only counts its starts.

use super::jobs::{KIND, Payload, QUEUE};
use anyhow::Result;
use clap::Args;
use leasehold_runtime::StoreSource;
use leasehold_store::Store;
use leasehold_worker::{JobContext, Stats, Worker, WorkerHandle};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Notify;

/// Options of the worker.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct WorkerOptions {
    /// Concurrency of the worker
    #[arg(long, default_value_t = 250)]
    pub(crate) concurrency: usize,
    /// Jobs that the worker prefetches
    #[arg(long, default_value_t = 750)]
    pub(crate) prefetch: usize,
    /// Database connections of the worker
    #[arg(long, default_value_t = 4)]
    pub(crate) connections: usize,
}

/// A running worker.
pub(crate) struct BenchWorker {
    handle: WorkerHandle,
    started: Arc<StartCounter>,
}

/// Counts started handlers.
#[derive(Default)]
struct StartCounter {
    count: AtomicU64,
    /// The count at which `reached` is notified.
    target: AtomicU64,
    reached: Notify,
}

impl BenchWorker {
    /// Starts a worker. Each handler first calls `on_start` with the payload's number.
    pub(crate) fn start<F>(
        store: Arc<dyn Store>,
        worker: WorkerOptions,
        on_start: F,
    ) -> Result<Self>
    where
        F: Fn(u64) + Clone + Send + Sync + 'static,
    {
        let started = Arc::new(StartCounter::default());
        let counter = started.clone();
        let handle = Worker::builder(Arc::new(StoreSource::new(store)))
            .queue(QUEUE)
            .concurrency(worker.concurrency)
            .prefetch(worker.prefetch)
            .handler(KIND, move |payload: Payload, _: JobContext| {
                on_start(payload.at);
                let count = counter.count.fetch_add(1, Ordering::AcqRel) + 1;
                if count == counter.target.load(Ordering::Acquire) {
                    counter.reached.notify_one();
                }
                async { Ok(()) }
            })
            .build()?
            .start();
        Ok(Self { handle, started })
    }

    /// Waits until this many handlers have started in total.
    pub(crate) async fn wait_started(&self, count: u64) {
        self.started.target.store(count, Ordering::Release);
        // A notification of an earlier wait may still be stored.
        while self.started.count.load(Ordering::Acquire) < count {
            self.started.reached.notified().await;
        }
    }

    /// Returns the number of started handlers.
    pub(crate) fn count(&self) -> u64 {
        self.started.count.load(Ordering::Acquire)
    }

    /// Stops the worker: reports the last results, returns unstarted jobs, and returns the statistics.
    pub(crate) async fn stop(self) -> Stats {
        self.handle.stop().await
    }
}
