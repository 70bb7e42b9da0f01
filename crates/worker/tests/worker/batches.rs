//! Prefetching, and batching of job results: a single result is written at once, results that arrive during a write are batched.

use crate::WAIT_TIMEOUT;
use crate::faulty_source::Fault;
use crate::logs;
use crate::worker_env::{WorkerEnv, until};
use leasehold_core::JobStatus;
use leasehold_testbed::BackendKind;
use leasehold_worker::{JobContext, WorkerBuilder};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tracing::Level;

on_both!(
    results_arriving_during_a_write_are_batched,
    single_result_is_written_at_once,
    concurrency_and_prefetch_limit_claimed_jobs,
    worker_without_prefetch_claims_only_what_it_runs,
    prefetched_jobs_behind_slow_handlers_are_returned,
    results_survive_an_outage,
    result_is_written_once_if_the_answer_is_lost,
    rejected_result_fails_the_job_with_the_reason,
    rejected_result_does_not_block_others,
    only_the_unwritten_result_is_sent_again,
    slow_retry_of_an_unwritten_result_does_not_delay_others,
    unwritten_result_is_sent_again_while_others_are_not_written,
    claims_survive_an_outage,
);

/// How long a worker does not prefetch after it has returned prefetched jobs.
const PREFETCH_OFF: Duration = Duration::from_secs(10);

/// A worker whose handlers only count.
fn counting(env: &WorkerEnv) -> (WorkerBuilder, Arc<AtomicUsize>) {
    let done = Arc::new(AtomicUsize::new(0));
    let count = done.clone();
    let handler = move |_: Value, _: JobContext| {
        count.fetch_add(1, Ordering::SeqCst);
        async { Ok(()) }
    };
    (env.worker().handler("send", handler), done)
}

async fn until_done(done: &AtomicUsize, count: usize) {
    let enough = async || done.load(Ordering::SeqCst) == count;
    until("all handlers are done", enough).await;
}

async fn results_arriving_during_a_write_are_batched(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    let barrier = Arc::new(Semaphore::new(0));
    env.source.plan("finish", &[Fault::Waits(barrier.clone())]);
    let (worker, done) = counting(&env);
    let worker = worker.build().unwrap().start();
    let first = env.enqueue("send", json!(null)).await;
    until("one is written", async || env.source.calls("finish") == 1).await;
    let ids = env.enqueue_many("emails", "send", 20).await;
    until_done(&done, 21).await;
    barrier.add_permits(1);
    env.until(first, JobStatus::Completed).await;
    env.until_all(&ids, JobStatus::Completed).await;
    assert_eq!(env.source.sizes("finish"), [1, 20]);
    let stats = worker.stop().await;
    assert_eq!((stats.completed, stats.finish_calls), (21, 2));
}

async fn single_result_is_written_at_once(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    let (worker, _) = counting(&env);
    let worker = worker.build().unwrap().start();
    for _ in 0..3 {
        let id = env.enqueue("send", json!(null)).await;
        env.until(id, JobStatus::Completed).await;
    }
    assert_eq!(env.source.sizes("finish"), [1, 1, 1]);
    worker.stop().await;
}

/// A worker whose handlers wait for a permit, the count of started handlers, and the permits.
fn waiting(env: &WorkerEnv) -> (WorkerBuilder, Arc<AtomicUsize>, Arc<Semaphore>) {
    let (started, go) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
    let (count, wait) = (started.clone(), go.clone());
    let handler = move |_: Value, _: JobContext| {
        count.fetch_add(1, Ordering::SeqCst);
        let wait = wait.clone();
        async move {
            wait.acquire().await?.forget();
            Ok(())
        }
    };
    (env.worker().handler("send", handler), started, go)
}

async fn concurrency_and_prefetch_limit_claimed_jobs(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    let ids = env.enqueue_many("emails", "send", 20).await;
    let (worker, started, go) = waiting(&env);
    let worker = worker.concurrency(2).prefetch(3);
    let worker = worker
        .prefetch_timeout(crate::NEVER)
        .build()
        .unwrap()
        .start();
    until("some are claimed", async || worker.stats().claimed == 5).await;
    until_done(&started, 2).await;
    let counts = env.store.queue_counts("emails").await.unwrap();
    assert_eq!((counts.running, counts.ready), (5, 15));
    go.add_permits(20);
    env.until_all(&ids, JobStatus::Completed).await;
    let claims = env.source.claims();
    assert!(claims.iter().all(|claim| claim.max <= 5), "{claims:?}");
    worker.stop().await;
}

async fn worker_without_prefetch_claims_only_what_it_runs(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    let ids = env.enqueue_many("emails", "send", 6).await;
    let (worker, started, go) = waiting(&env);
    let worker = worker.concurrency(2).prefetch(0).build().unwrap().start();
    until_done(&started, 2).await;
    assert_eq!(worker.stats().claimed, 2);
    go.add_permits(6);
    env.until_all(&ids, JobStatus::Completed).await;
    assert!(env.source.claims().iter().all(|claim| claim.max <= 2));
    worker.stop().await;
}

async fn prefetched_jobs_behind_slow_handlers_are_returned(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    let ids = env.enqueue_many("emails", "send", 3).await;
    let (worker, started, go) = waiting(&env);
    let begun = Instant::now();
    let worker = worker.concurrency(1).build().unwrap().start();
    until_done(&started, 1).await;
    until("one is returned", async || worker.stats().returned == 1).await;
    // Prefetching is off for a while; a slow machine may take longer.
    go.add_permits(1);
    until_done(&started, 2).await;
    env.until(ids[0], JobStatus::Completed).await;
    let counts = env.store.queue_counts("emails").await.unwrap();
    if begun.elapsed() < PREFETCH_OFF {
        assert_eq!((counts.running, counts.ready), (1, 1));
    }
    go.add_permits(2);
    env.until_all(&ids, JobStatus::Completed).await;
    assert_eq!(worker.stop().await.completed, 3);
}

async fn results_survive_an_outage(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    env.source
        .plan("finish", &[Fault::CallLost, Fault::CallLost]);
    let (worker, done) = counting(&env);
    let worker = worker.build().unwrap().start();
    let id = env.enqueue("send", json!(null)).await;
    let job = env.until(id, JobStatus::Completed).await;
    assert_eq!((job.attempts, done.load(Ordering::SeqCst)), (1, 1));
    let stats = worker.stop().await;
    assert_eq!((stats.completed, stats.lost), (1, 0));
    logs::assert_once(Level::ERROR, &["failed to write job results"]);
}

async fn result_is_written_once_if_the_answer_is_lost(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    env.source.plan("finish", &[Fault::AnswerLost]);
    let (worker, done) = counting(&env);
    let worker = worker.build().unwrap().start();
    let id = env.enqueue("send", json!(null)).await;
    until("the lease is gone", async || worker.stats().lost == 1).await;
    let job = env.job(id).await;
    assert_eq!((job.status, job.attempts), (JobStatus::Completed.into(), 1));
    assert_eq!(done.load(Ordering::SeqCst), 1);
    worker.stop().await;
}

async fn rejected_result_fails_the_job_with_the_reason(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    env.source.plan("finish", &[Fault::Rejected]);
    let (worker, _) = counting(&env);
    let worker = worker.build().unwrap().start();
    let id = env.enqueue_with("send", json!(null), |new| new.max_attempts = Some(1));
    let job = env.until(id.await, JobStatus::Failed).await;
    let error = job.last_error.unwrap();
    assert!(
        error.starts_with("the store rejected the job result"),
        "{error}"
    );
    worker.stop().await;
}

async fn rejected_result_does_not_block_others(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    let barrier = Arc::new(Semaphore::new(0));
    let faults = [Fault::Waits(barrier.clone()), Fault::Rejected];
    env.source.plan("finish", &faults);
    let (worker, done) = counting(&env);
    let worker = worker.build().unwrap().start();
    env.enqueue("send", json!(null)).await;
    until("one is written", async || env.source.calls("finish") == 1).await;
    let ids = env.enqueue_many("emails", "send", 4).await;
    until_done(&done, 5).await;
    barrier.add_permits(1);
    env.until_all(&ids, JobStatus::Completed).await;
    assert_eq!(env.source.sizes("finish"), [1, 4, 1, 1, 1, 1]);
    worker.stop().await;
}

async fn only_the_unwritten_result_is_sent_again(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    let barrier = Arc::new(Semaphore::new(0));
    let faults = [Fault::Waits(barrier.clone()), Fault::FirstNotWritten];
    env.source.plan("finish", &faults);
    let (worker, done) = counting(&env);
    let worker = worker.build().unwrap().start();
    env.enqueue("send", json!(null)).await;
    until("one is written", async || env.source.calls("finish") == 1).await;
    let ids = env.enqueue_many("emails", "send", 4).await;
    until_done(&done, 5).await;
    barrier.add_permits(1);
    env.until_all(&ids, JobStatus::Completed).await;
    assert_eq!(env.source.sizes("finish"), [1, 4, 1]);
    let stats = worker.stop().await;
    assert_eq!((stats.completed, stats.lost, stats.unwritten), (5, 0, 0));
    assert_eq!(done.load(Ordering::SeqCst), 5, "each ran once");
}

async fn claims_survive_an_outage(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    env.source
        .plan("claim", &[Fault::CallLost, Fault::CallLost]);
    let id = env.enqueue("send", json!(null)).await;
    let (worker, _) = counting(&env);
    let worker = worker.build().unwrap().start();
    env.until(id, JobStatus::Completed).await;
    logs::assert_once(Level::ERROR, &["failed to claim jobs"]);
    worker.stop().await;
}

/// Results of other jobs must not wait for the retry of a result whose row is locked.
async fn slow_retry_of_an_unwritten_result_does_not_delay_others(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    let barrier = Arc::new(Semaphore::new(0));
    let (worker, done) = counting(&env);
    let worker = worker.build().unwrap();
    let locked = env.enqueue("send", json!(null)).await;
    env.source.lock(locked);
    let worker = worker.start();
    until_done(&done, 1).await;
    until("it is not written", async || {
        env.source.calls("finish") == 1
    })
    .await;
    env.source.plan("finish", &[Fault::Waits(barrier.clone())]);
    until("it is sent again", async || env.source.calls("finish") == 2).await;
    let other = env.enqueue("send", json!(null)).await;
    env.until(other, JobStatus::Completed).await;
    env.source.unlock_all();
    barrier.add_permits(1);
    env.until(locked, JobStatus::Completed).await;
    let stats = worker.stop().await;
    assert_eq!((stats.completed, stats.lost, stats.unwritten), (2, 0, 0));
}

async fn unwritten_result_is_sent_again_while_others_are_not_written(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    let (worker, done) = counting(&env);
    let worker = worker.build().unwrap();
    let first = env.enqueue("send", json!(null)).await;
    env.source.lock(first);
    let worker = worker.start();
    until("it is not written", async || {
        env.source.calls("finish") == 1
    })
    .await;
    env.source.lock_all_but(first);
    let (begun, mut locked) = (Instant::now(), Vec::new());
    while env.status(first).await != JobStatus::Completed {
        assert!(
            begun.elapsed() < WAIT_TIMEOUT,
            "the first result is not sent again"
        );
        locked.push(env.enqueue("send", json!(null)).await);
        until_done(&done, 1 + locked.len()).await;
    }
    env.source.unlock_all();
    env.until_all(&locked, JobStatus::Completed).await;
    worker.stop().await;
}
