//! A worker under a limit: a limit is for what runs, not for what waits in a worker's hands.

use crate::worker_env::{WorkerEnv, until};
use leasehold_core::JobStatus;
use leasehold_store::queue::QueueChange;
use leasehold_testbed::BackendKind;
use leasehold_worker::{JobContext, WorkerHandle};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Semaphore;

on_both!(
    what_waits_in_one_worker_does_not_use_up_the_limit_of_all,
    a_raised_limit_is_used_at_once
);

fn limit(limit: u32) -> QueueChange {
    QueueChange {
        limit: Some(Some(limit)),
        ..QueueChange::default()
    }
}

struct Waiting {
    started: Arc<AtomicUsize>,
    go: Arc<Semaphore>,
}

impl Waiting {
    fn new() -> Self {
        Self {
            started: Arc::default(),
            go: Arc::new(Semaphore::new(0)),
        }
    }

    fn start(&self, ground: &WorkerEnv, concurrency: usize) -> WorkerHandle {
        let (started, go) = (self.started.clone(), self.go.clone());
        let handler = move |_: Value, _: JobContext| {
            started.fetch_add(1, Ordering::SeqCst);
            let go = go.clone();
            async move {
                go.acquire().await?.forget();
                Ok(())
            }
        };
        let worker = ground.worker().concurrency(concurrency);
        let worker = worker.handler("send", handler);
        worker.build().unwrap().start()
    }

    async fn until_started(&self, count: usize) {
        let started = async || self.started.load(Ordering::SeqCst) == count;
        until("so many run", started).await;
    }
}

async fn what_waits_in_one_worker_does_not_use_up_the_limit_of_all(on: BackendKind) {
    let ground = WorkerEnv::new(on).await;
    ground.change_queue(limit(2)).await;
    let ids = ground.enqueue_many("emails", "send", 6).await;
    let waiting = Waiting::new();
    // Each could claim two: one that runs and one that waits.
    let first = waiting.start(&ground, 1);
    waiting.until_started(1).await;
    let second = waiting.start(&ground, 1);
    waiting.until_started(2).await;
    waiting.go.add_permits(6);
    ground.until_all(&ids, JobStatus::Completed).await;
    first.stop().await;
    second.stop().await;
}

async fn a_raised_limit_is_used_at_once(on: BackendKind) {
    let ground = WorkerEnv::new(on).await;
    ground.change_queue(limit(1)).await;
    let ids = ground.enqueue_many("emails", "send", 3).await;
    let waiting = Waiting::new();
    let worker = waiting.start(&ground, 8);
    waiting.until_started(1).await;
    ground.change_queue(limit(3)).await;
    waiting.until_started(3).await;
    waiting.go.add_permits(3);
    ground.until_all(&ids, JobStatus::Completed).await;
    worker.stop().await;
}
