//! Workers under a queue limit: the limit is for running jobs, not for prefetched ones.

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
    prefetched_jobs_do_not_use_up_the_queue_limit,
    raised_limit_takes_effect_at_once
);

fn limit(limit: u32) -> QueueChange {
    QueueChange {
        limit: Some(Some(limit)),
        ..QueueChange::default()
    }
}

struct BlockedHandlers {
    started: Arc<AtomicUsize>,
    go: Arc<Semaphore>,
}

impl BlockedHandlers {
    fn new() -> Self {
        Self {
            started: Arc::default(),
            go: Arc::new(Semaphore::new(0)),
        }
    }

    fn start(&self, env: &WorkerEnv, concurrency: usize) -> WorkerHandle {
        let (started, go) = (self.started.clone(), self.go.clone());
        let handler = move |_: Value, _: JobContext| {
            started.fetch_add(1, Ordering::SeqCst);
            let go = go.clone();
            async move {
                go.acquire().await?.forget();
                Ok(())
            }
        };
        let worker = env.worker().concurrency(concurrency);
        let worker = worker.handler("send", handler);
        worker.build().unwrap().start()
    }

    async fn until_started(&self, count: usize) {
        let started = async || self.started.load(Ordering::SeqCst) == count;
        until("the handlers run", started).await;
    }
}

async fn prefetched_jobs_do_not_use_up_the_queue_limit(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    env.change_queue(limit(2)).await;
    let ids = env.enqueue_many("emails", "send", 6).await;
    let waiting = BlockedHandlers::new();
    // Each worker could claim two jobs: one to run and one prefetched.
    let first = waiting.start(&env, 1);
    waiting.until_started(1).await;
    let second = waiting.start(&env, 1);
    waiting.until_started(2).await;
    waiting.go.add_permits(6);
    env.until_all(&ids, JobStatus::Completed).await;
    first.stop().await;
    second.stop().await;
}

async fn raised_limit_takes_effect_at_once(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    env.change_queue(limit(1)).await;
    let ids = env.enqueue_many("emails", "send", 3).await;
    let waiting = BlockedHandlers::new();
    let worker = waiting.start(&env, 8);
    waiting.until_started(1).await;
    env.change_queue(limit(3)).await;
    waiting.until_started(3).await;
    waiting.go.add_permits(3);
    env.until_all(&ids, JobStatus::Completed).await;
    worker.stop().await;
}
