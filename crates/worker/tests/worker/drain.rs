//! Draining: the worker returns prefetched jobs, lets running handlers finish, and loses no job.

use crate::faulty_source::Fault;
use crate::worker_env::{WorkerEnv, until};
use futures::poll;
use leasehold_core::JobStatus;
use leasehold_testbed::BackendKind;
use leasehold_worker::{JobContext, Outcome, WorkerHandle};
use serde_json::{Value, json};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;

on_both!(
    drain_returns_prefetched_jobs_and_finishes_running_ones,
    handler_can_snooze_when_the_worker_stops,
    drain_timeout_cancels_the_handler_and_returns_its_job,
    result_within_the_cancel_grace_counts,
    claim_under_way_at_shutdown_is_returned,
    dropping_the_worker_drops_its_handlers,
    worker_stops_while_the_store_is_unreachable,
    dropping_the_handle_stops_the_worker,
);

const SOON: Duration = Duration::from_millis(50);

/// A worker whose handlers wait for a permit, the permits, and the count of started handlers.
fn waiting(
    env: &WorkerEnv,
    concurrency: usize,
) -> (WorkerHandle, Arc<Semaphore>, Arc<AtomicUsize>) {
    let (go, started) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let (wait, count) = (go.clone(), started.clone());
    let handler = move |_: Value, _: JobContext| {
        let wait = wait.clone();
        count.fetch_add(1, Ordering::SeqCst);
        async move {
            wait.acquire().await?.forget();
            Ok(())
        }
    };
    let worker = env.worker().concurrency(concurrency).prefetch(8);
    let worker = worker.drain_timeout(SOON).cancel_grace(SOON);
    let worker = worker.handler("send", handler);
    (worker.build().unwrap().start(), go, started)
}

async fn until_started(started: &AtomicUsize, count: usize) {
    let enough = async || started.load(Ordering::SeqCst) >= count;
    until("handlers have started", enough).await;
}

async fn drain_returns_prefetched_jobs_and_finishes_running_ones(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    let ids = env.enqueue_many("emails", "send", 4).await;
    let (go, started) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (wait, begun) = (go.clone(), started.clone());
    let handler = move |_: Value, _: JobContext| {
        let wait = wait.clone();
        begun.add_permits(1);
        async move {
            wait.acquire().await?.forget();
            Ok(())
        }
    };
    let worker = env.worker().concurrency(1).prefetch(8);
    let worker = worker.prefetch_timeout(crate::NEVER);
    let worker = worker.handler("send", handler).build().unwrap().start();
    started.acquire().await.unwrap().forget();
    until("all are claimed", async || worker.stats().claimed == 4).await;
    let stopping = tokio::spawn(worker.stop());
    for id in &ids[1..] {
        let job = env.until(*id, JobStatus::Queued).await;
        assert_eq!(job.attempts, 0);
        assert!(job.token > 0);
    }
    assert_eq!(env.status(ids[0]).await, JobStatus::Running);
    go.add_permits(1);
    let stats = stopping.await.unwrap();
    assert_eq!(env.status(ids[0]).await, JobStatus::Completed);
    // A claim under way at the stop may claim a returned job, which is then returned again.
    assert!(stats.returned >= 3, "{stats:?}");
    assert_eq!((stats.claimed - stats.returned, stats.completed), (1, 1));
}

async fn handler_can_snooze_when_the_worker_stops(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    let started = Arc::new(Semaphore::new(0));
    let begun = started.clone();
    let handler = move |(): (), job: JobContext| {
        begun.add_permits(1);
        async move {
            job.stopping().await;
            assert!(job.is_stopping());
            job.progress(&"half").await?;
            Ok(Outcome::snooze(Duration::ZERO))
        }
    };
    let worker = env.worker().handler("send", handler);
    let worker = worker.build().unwrap().start();
    let id = env.enqueue("send", json!(null)).await;
    started.acquire().await.unwrap().forget();
    let stats = worker.stop().await;
    assert_eq!(stats.snoozed, 1);
    let job = env.job(id).await;
    assert_eq!((job.status, job.attempts), (JobStatus::Queued.into(), 0));
    assert_eq!(job.progress.unwrap().as_str(), "\"half\"");
}

async fn drain_timeout_cancels_the_handler_and_returns_its_job(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    let (worker, _go, started) = waiting(&env, 2);
    let id = env.enqueue("send", json!(null)).await;
    until_started(&started, 1).await;
    let stats = worker.stop().await;
    assert_eq!((stats.returned, stats.abandoned), (1, 0));
    let job = env.job(id).await;
    assert_eq!((job.status, job.attempts), (JobStatus::Queued.into(), 0));
}

async fn result_within_the_cancel_grace_counts(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    let started = Arc::new(Semaphore::new(0));
    let begun = started.clone();
    let handler = move |(): (), job: JobContext| {
        begun.add_permits(1);
        async move {
            job.cancelled().await;
            Ok("saved")
        }
    };
    let worker = env.worker().drain_timeout(SOON);
    let worker = worker.handler("send", handler).build().unwrap().start();
    let id = env.enqueue("send", json!(null)).await;
    started.acquire().await.unwrap().forget();
    let stats = worker.stop().await;
    assert_eq!((stats.completed, stats.returned), (1, 0));
    let job = env.job(id).await;
    assert_eq!(job.result.unwrap().as_str(), "\"saved\"");
}

async fn claim_under_way_at_shutdown_is_returned(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    let barrier = Arc::new(Semaphore::new(0));
    env.source.plan("claim", &[Fault::Waits(barrier.clone())]);
    let id = env.enqueue("send", json!(null)).await;
    let (worker, _go, started) = waiting(&env, 2);
    until("it claims", async || env.source.calls("claim") == 1).await;
    // The first poll begins the stop, before the claim is answered.
    let mut stopping = pin!(worker.stop());
    assert!(poll!(stopping.as_mut()).is_pending());
    barrier.add_permits(1);
    let stats = stopping.await;
    assert_eq!((stats.claimed, stats.returned), (1, 1));
    assert_eq!(started.load(Ordering::SeqCst), 0);
    let job = env.job(id).await;
    assert_eq!((job.status, job.attempts), (JobStatus::Queued.into(), 0));
}

/// Adds a permit when it is dropped.
struct DropSignal(Arc<Semaphore>);

impl Drop for DropSignal {
    fn drop(&mut self) {
        self.0.add_permits(1);
    }
}

async fn dropping_the_worker_drops_its_handlers(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    let (started, dropped) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (begun, signal) = (started.clone(), dropped.clone());
    let handler = move |(): (), _: JobContext| {
        begun.add_permits(1);
        let signal = DropSignal(signal.clone());
        async move {
            let _signal = signal;
            std::future::pending::<()>().await;
            Ok(())
        }
    };
    let worker = env.worker().handler("send", handler).build().unwrap();
    let running = tokio::spawn(worker.run(std::future::pending()));
    let id = env.enqueue("send", json!(null)).await;
    started.acquire().await.unwrap().forget();
    running.abort();
    dropped.acquire().await.unwrap().forget();
    assert_eq!(env.status(id).await, JobStatus::Running);
}

async fn worker_stops_while_the_store_is_unreachable(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    let (worker, _go, started) = waiting(&env, 1);
    env.enqueue("send", json!(null)).await;
    until_started(&started, 1).await;
    for name in ["finish", "claim", "renew", "arm_notification"] {
        env.source.always(name, Fault::CallLost);
    }
    let stats = worker.stop().await;
    assert_eq!((stats.unwritten, stats.returned), (1, 0));
}

async fn dropping_the_handle_stops_the_worker(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    let (worker, go, started) = waiting(&env, 1);
    let id = env.enqueue("send", json!(null)).await;
    until_started(&started, 1).await;
    drop(worker);
    go.add_permits(1);
    env.until(id, JobStatus::Completed).await;
    let left = env.enqueue("send", json!(null)).await;
    let polls = env.source.calls("claim");
    assert_eq!(env.status(left).await, JobStatus::Queued);
    assert_eq!(env.source.calls("claim"), polls);
}

/// The worker cannot stop a handler that blocks its thread, so it does not return the job.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn handler_that_ignores_cancellation_keeps_its_lease() {
    let env = WorkerEnv::new(BackendKind::Sqlite).await;
    let (started, release) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let (begun, free) = (started.clone(), release.clone());
    let handler = move |(): (), _: JobContext| {
        begun.add_permits(1);
        let free = free.clone();
        async move {
            while free.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            Ok(())
        }
    };
    let worker = env.worker().drain_timeout(SOON).cancel_grace(SOON);
    let worker = worker.handler("send", handler).build().unwrap().start();
    let id = env.enqueue("send", json!(null)).await;
    started.acquire().await.unwrap().forget();
    let stats = worker.stop().await;
    assert_eq!((stats.abandoned, stats.returned), (1, 0));
    assert_eq!(env.status(id).await, JobStatus::Running);
    release.store(1, Ordering::SeqCst);
}
