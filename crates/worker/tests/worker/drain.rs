//! Stopping: what was not started is given back, what runs may finish, and nothing is lost.

use crate::spy::Fault;
use crate::worker_env::{WorkerEnv, until};
use leasehold_core::JobStatus;
use leasehold_testbed::BackendKind;
use leasehold_worker::{JobContext, Outcome, WorkerHandle};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;

on_both!(
    what_was_not_started_is_given_back_at_once_and_what_runs_may_finish,
    a_handler_may_heed_the_stop_and_go_on_elsewhere,
    a_handler_that_runs_too_long_is_cancelled_and_its_job_given_back,
    what_a_cancelled_handler_still_answers_counts,
    a_claim_under_way_is_given_back,
    a_worker_that_is_dropped_takes_its_handlers_with_it,
    a_store_that_is_gone_does_not_keep_a_worker_from_stopping,
    a_dropped_handle_stops_its_worker,
);

const SOON: Duration = Duration::from_millis(50);

/// A worker whose handlers wait for a permit. The second counts those that have started.
fn waiting(
    ground: &WorkerEnv,
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
    let worker = ground.worker().concurrency(concurrency).prefetch(8);
    let worker = worker.drain_timeout(SOON).cancel_grace(SOON);
    let worker = worker.handler("send", handler);
    (worker.build().unwrap().start(), go, started)
}

async fn until_started(started: &AtomicUsize, count: usize) {
    let enough = async || started.load(Ordering::SeqCst) >= count;
    until("handlers have started", enough).await;
}

async fn what_was_not_started_is_given_back_at_once_and_what_runs_may_finish(on: BackendKind) {
    let ground = WorkerEnv::new(on).await;
    let ids = ground.enqueue_many("emails", "send", 4).await;
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
    let worker = ground.worker().concurrency(1).prefetch(8);
    let worker = worker.prefetch_patience(crate::NEVER);
    let worker = worker.handler("send", handler).build().unwrap().start();
    started.acquire().await.unwrap().forget();
    until("all are claimed", async || worker.stats().claimed == 4).await;
    let stopping = tokio::spawn(worker.stop());
    for id in &ids[1..] {
        let job = ground.until(*id, JobStatus::Queued).await;
        assert_eq!(job.attempts, 0);
        assert!(job.token > 0);
    }
    assert_eq!(ground.status(ids[0]).await, JobStatus::Running);
    go.add_permits(1);
    let stats = stopping.await.unwrap();
    assert_eq!(ground.status(ids[0]).await, JobStatus::Completed);
    // A look under way at the stop may find again what was given back, and gives it back too.
    assert!(stats.given_back >= 3, "{stats:?}");
    assert_eq!((stats.claimed - stats.given_back, stats.completed), (1, 1));
}

async fn a_handler_may_heed_the_stop_and_go_on_elsewhere(on: BackendKind) {
    let ground = WorkerEnv::new(on).await;
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
    let worker = ground.worker().handler("send", handler);
    let worker = worker.build().unwrap().start();
    let id = ground.enqueue("send", json!(null)).await;
    started.acquire().await.unwrap().forget();
    let stats = worker.stop().await;
    assert_eq!(stats.snoozed, 1);
    let job = ground.job(id).await;
    assert_eq!((job.status, job.attempts), (JobStatus::Queued, 0));
    assert_eq!(job.progress.unwrap().as_str(), "\"half\"");
}

async fn a_handler_that_runs_too_long_is_cancelled_and_its_job_given_back(on: BackendKind) {
    let ground = WorkerEnv::new(on).await;
    let (worker, _go, started) = waiting(&ground, 2);
    let id = ground.enqueue("send", json!(null)).await;
    until_started(&started, 1).await;
    let stats = worker.stop().await;
    assert_eq!((stats.given_back, stats.abandoned), (1, 0));
    let job = ground.job(id).await;
    assert_eq!((job.status, job.attempts), (JobStatus::Queued, 0));
}

async fn what_a_cancelled_handler_still_answers_counts(on: BackendKind) {
    let ground = WorkerEnv::new(on).await;
    let started = Arc::new(Semaphore::new(0));
    let begun = started.clone();
    let handler = move |(): (), job: JobContext| {
        begun.add_permits(1);
        async move {
            job.cancelled().await;
            Ok("saved")
        }
    };
    let worker = ground.worker().drain_timeout(SOON);
    let worker = worker.handler("send", handler).build().unwrap().start();
    let id = ground.enqueue("send", json!(null)).await;
    started.acquire().await.unwrap().forget();
    let stats = worker.stop().await;
    assert_eq!((stats.completed, stats.given_back), (1, 0));
    let job = ground.job(id).await;
    assert_eq!(job.result.unwrap().as_str(), "\"saved\"");
}

async fn a_claim_under_way_is_given_back(on: BackendKind) {
    let ground = WorkerEnv::new(on).await;
    let barrier = Arc::new(Semaphore::new(0));
    ground.spy.plan("claim", &[Fault::Waits(barrier.clone())]);
    let id = ground.enqueue("send", json!(null)).await;
    let (worker, _go, started) = waiting(&ground, 2);
    until("it claims", async || ground.spy.calls("claim") == 1).await;
    let stopping = tokio::spawn(worker.stop());
    barrier.add_permits(1);
    let stats = stopping.await.unwrap();
    assert_eq!((stats.claimed, stats.given_back), (1, 1));
    assert_eq!(started.load(Ordering::SeqCst), 0);
    let job = ground.job(id).await;
    assert_eq!((job.status, job.attempts), (JobStatus::Queued, 0));
}

/// Says when it is dropped.
struct Told(Arc<Semaphore>);

impl Drop for Told {
    fn drop(&mut self) {
        self.0.add_permits(1);
    }
}

async fn a_worker_that_is_dropped_takes_its_handlers_with_it(on: BackendKind) {
    let ground = WorkerEnv::new(on).await;
    let (started, dropped) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (begun, told) = (started.clone(), dropped.clone());
    let handler = move |(): (), _: JobContext| {
        begun.add_permits(1);
        let told = Told(told.clone());
        async move {
            let _told = told;
            std::future::pending::<()>().await;
            Ok(())
        }
    };
    let worker = ground.worker().handler("send", handler).build().unwrap();
    let running = tokio::spawn(worker.run(std::future::pending()));
    let id = ground.enqueue("send", json!(null)).await;
    started.acquire().await.unwrap().forget();
    running.abort();
    dropped.acquire().await.unwrap().forget();
    assert_eq!(ground.status(id).await, JobStatus::Running);
}

async fn a_store_that_is_gone_does_not_keep_a_worker_from_stopping(on: BackendKind) {
    let ground = WorkerEnv::new(on).await;
    let (worker, _go, started) = waiting(&ground, 1);
    ground.enqueue("send", json!(null)).await;
    until_started(&started, 1).await;
    for name in ["finish", "claim", "renew", "arm"] {
        ground.spy.always(name, Fault::CallLost);
    }
    let stats = worker.stop().await;
    assert_eq!((stats.unwritten, stats.given_back), (1, 0));
}

async fn a_dropped_handle_stops_its_worker(on: BackendKind) {
    let ground = WorkerEnv::new(on).await;
    let (worker, go, started) = waiting(&ground, 1);
    let id = ground.enqueue("send", json!(null)).await;
    until_started(&started, 1).await;
    drop(worker);
    go.add_permits(1);
    ground.until(id, JobStatus::Completed).await;
    let left = ground.enqueue("send", json!(null)).await;
    let looks = ground.spy.calls("claim");
    assert_eq!(ground.status(left).await, JobStatus::Queued);
    assert_eq!(ground.spy.calls("claim"), looks);
}

/// A thread that a handler holds cannot be taken from it, so nobody says that its job is free.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_handler_that_will_not_stop_keeps_its_lease() {
    let ground = WorkerEnv::new(BackendKind::Sqlite).await;
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
    let worker = ground.worker().drain_timeout(SOON).cancel_grace(SOON);
    let worker = worker.handler("send", handler).build().unwrap().start();
    let id = ground.enqueue("send", json!(null)).await;
    started.acquire().await.unwrap().forget();
    let stats = worker.stop().await;
    assert_eq!((stats.abandoned, stats.given_back), (1, 0));
    assert_eq!(ground.status(id).await, JobStatus::Running);
    release.store(1, Ordering::SeqCst);
}
