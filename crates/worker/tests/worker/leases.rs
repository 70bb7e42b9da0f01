//! Leases: renewal while a handler runs, and lost leases, detected by the store or by the worker.

use crate::faulty_source::Fault;
use crate::logs;
use crate::worker_env::{WorkerEnv, until};
use leasehold_core::{JobStatus, Timestamp};
use leasehold_store::queue::QueueChange;
use leasehold_testbed::BackendKind;
use leasehold_worker::{JobContext, ProgressResult, WorkerHandle};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tracing::Level;

on_both!(
    long_handler_keeps_its_lease,
    all_leases_are_renewed_in_one_statement,
    locked_lease_does_not_delay_the_renewal_of_longer_ones,
    lease_set_by_the_queue_is_renewed,
    handler_is_dropped_and_job_rerun_after_lease_loss,
    result_after_lease_loss_is_rejected,
    failing_renewals_cancel_handlers_before_expiry,
    hanging_renewals_cancel_handlers_before_expiry,
    two_failed_renewals_do_not_lose_the_lease,
    prefetched_job_with_lost_lease_is_not_started,
    rejected_progress_cancels_the_handler,
    job_answered_after_its_lease_is_not_started,
    old_lease_is_renewed_at_once,
    lease_is_kept_with_store_clock_two_hours_ahead,
    lease_is_kept_with_store_clock_two_hours_behind,
);

/// Renewed after a third of it, and, if no renewal succeeds, expires during a test. Long enough that a slow machine starts the handlers and renews in time.
const LEASE: Duration = Duration::from_secs(10);
/// Not renewed during a test.
const LONG: Duration = Duration::from_secs(3600);

/// Handlers that wait for a permit, their counts and their jobs.
#[derive(Clone)]
struct BlockingHandlers {
    go: Arc<Semaphore>,
    started: Arc<AtomicUsize>,
    ended: Arc<AtomicUsize>,
    jobs: Arc<Mutex<Vec<(u32, i64, CancellationToken)>>>,
}

/// Counts handlers that returned or were dropped.
struct EndCounter(Arc<AtomicUsize>);

impl Drop for EndCounter {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl BlockingHandlers {
    fn new() -> Self {
        Self {
            go: Arc::new(Semaphore::new(0)),
            started: Arc::default(),
            ended: Arc::default(),
            jobs: Arc::default(),
        }
    }

    async fn work(self, job: JobContext) {
        let _ended = EndCounter(self.ended);
        let seen = (job.attempt(), job.token(), job.cancellation());
        self.jobs.lock().unwrap().push(seen);
        self.started.fetch_add(1, Ordering::SeqCst);
        self.go.acquire().await.unwrap().forget();
    }

    /// Starts a worker with these handlers.
    fn start(&self, env: &WorkerEnv, lease: Duration, concurrency: usize) -> WorkerHandle {
        let waiters = self.clone();
        let handler = move |_: serde_json::Value, job: JobContext| {
            let waiters = waiters.clone();
            async move {
                waiters.work(job).await;
                Ok("done")
            }
        };
        let worker = env.worker().lease(lease).concurrency(concurrency);
        let worker = worker.prefetch(3).prefetch_timeout(LONG);
        let worker = worker.handler("send", handler);
        worker.build().unwrap().start()
    }

    async fn until_started(&self, count: usize) {
        let started = async || self.started.load(Ordering::SeqCst) >= count;
        until("handlers have started", started).await;
    }

    async fn until_ended(&self, count: usize) {
        let ended = async || self.ended.load(Ordering::SeqCst) >= count;
        until("handlers have ended", ended).await;
    }
}

async fn until_renewed(env: &WorkerEnv, times: usize) {
    let renewed = async || env.source.calls("renew") >= times;
    until("leases were renewed", renewed).await;
}

async fn assert_lease_is_kept(env: WorkerEnv) {
    let waiters = BlockingHandlers::new();
    let worker = waiters.start(&env, LEASE, 2);
    let id = env.enqueue("send", json!(null)).await;
    waiters.until_started(1).await;
    // Longer than the lease without renewals.
    until_renewed(&env, 4).await;
    waiters.go.add_permits(1);
    let job = env.until(id, JobStatus::Completed).await;
    assert_eq!(job.attempts, 1);
    let stats = worker.stop().await;
    assert_eq!((stats.claimed, stats.completed, stats.lost), (1, 1, 0));
}

async fn long_handler_keeps_its_lease(on: BackendKind) {
    assert_lease_is_kept(WorkerEnv::new(on).await).await;
}

async fn lease_is_kept_with_store_clock_two_hours_ahead(on: BackendKind) {
    let ahead = Timestamp::now() + Duration::from_secs(7200);
    assert_lease_is_kept(WorkerEnv::starting_at(on, ahead).await).await;
}

async fn lease_is_kept_with_store_clock_two_hours_behind(on: BackendKind) {
    let behind = Timestamp::now() - Duration::from_secs(7200);
    assert_lease_is_kept(WorkerEnv::starting_at(on, behind).await).await;
}

async fn all_leases_are_renewed_in_one_statement(on: BackendKind) {
    let env = WorkerEnv::still(on).await;
    let waiters = BlockingHandlers::new();
    let ids = env.enqueue_many("emails", "send", 8).await;
    let worker = waiters.start(&env, LEASE, 5);
    waiters.until_started(5).await;
    until_renewed(&env, 3).await;
    // Five running, three prefetched.
    assert_eq!(env.source.sizes("renew")[1..3], [8, 8]);
    waiters.go.add_permits(8);
    env.until_all(&ids, JobStatus::Completed).await;
    worker.stop().await;
}

/// Leases of different lengths are renewed by different statements.
async fn locked_lease_does_not_delay_the_renewal_of_longer_ones(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    for (queue, lease) in [("emails", LEASE), ("letters", LEASE * 2)] {
        let change = QueueChange {
            lease: Some(lease),
            ..QueueChange::default()
        };
        let local = leasehold_store::Actor::Local;
        env.store
            .queue_update(queue, &change, &local)
            .await
            .unwrap();
    }
    let mut ids = env.enqueue_many("emails", "send", 1).await;
    env.source.lock(ids[0]);
    ids.extend(env.enqueue_many("letters", "send", 3).await);
    let waiters = BlockingHandlers::new();
    let handlers = waiters.clone();
    let handler = move |_: serde_json::Value, job: JobContext| {
        let handlers = handlers.clone();
        async move {
            handlers.work(job).await;
            Ok("done")
        }
    };
    let worker = env.worker().queue("letters").concurrency(4);
    let worker = worker.handler("send", handler).build().unwrap().start();
    waiters.until_started(4).await;
    until_renewed(&env, 3).await;
    let mut first = env.source.sizes("renew")[..2].to_vec();
    first.sort_unstable();
    assert_eq!(
        first,
        [1, 3],
        "both are renewed before the locked one is retried"
    );
    env.source.unlock_all();
    waiters.go.add_permits(4);
    env.until_all(&ids, JobStatus::Completed).await;
    let stats = worker.stop().await;
    assert_eq!((stats.completed, stats.lost), (4, 0));
}

async fn lease_set_by_the_queue_is_renewed(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    let change = QueueChange {
        lease: Some(LEASE),
        ..QueueChange::default()
    };
    env.change_queue(change).await;
    let waiters = BlockingHandlers::new();
    let handled = waiters.clone();
    let handler = move |(): (), job: JobContext| {
        let waiters = handled.clone();
        async move {
            waiters.work(job).await;
            Ok(())
        }
    };
    let worker = env.worker().handler("send", handler);
    let worker = worker.build().unwrap().start();
    let id = env.enqueue("send", json!(null)).await;
    waiters.until_started(1).await;
    until_renewed(&env, 4).await;
    waiters.go.add_permits(1);
    assert_eq!(env.until(id, JobStatus::Completed).await.attempts, 1);
    worker.stop().await;
}

async fn handler_is_dropped_and_job_rerun_after_lease_loss(on: BackendKind) {
    let env = WorkerEnv::still(on).await;
    let waiters = BlockingHandlers::new();
    let worker = waiters.start(&env, LEASE, 2);
    let id = env.enqueue("send", json!(null)).await;
    waiters.until_started(1).await;
    env.advance(LEASE);
    waiters.until_ended(1).await;
    // As the sweeper does; it also notifies.
    env.store.job_requeue_expired(10).await.unwrap();
    waiters.until_started(2).await;
    waiters.go.add_permits(1);
    let job = env.until(id, JobStatus::Completed).await;
    assert_eq!(job.attempts, 2);
    let stats = worker.stop().await;
    assert_eq!((stats.claimed, stats.lost, stats.completed), (2, 1, 1));
    let jobs = waiters.jobs.lock().unwrap();
    let ((first, low, lost), (second, high, valid)) = (&jobs[0], &jobs[1]);
    assert_eq!((*first, *second), (1, 2));
    assert!(high > low, "the fencing token does not increase");
    assert!(lost.is_cancelled() && !valid.is_cancelled());
    let id = format!("job={id}");
    logs::assert_once(Level::WARN, &["lease lost", &id, "queue=emails"]);
}

async fn result_after_lease_loss_is_rejected(on: BackendKind) {
    let env = WorkerEnv::still(on).await;
    let waiters = BlockingHandlers::new();
    let worker = waiters.start(&env, LONG, 1);
    let id = env.enqueue("send", json!(null)).await;
    waiters.until_started(1).await;
    env.advance(LONG);
    waiters.go.add_permits(1);
    until("the result is rejected", async || worker.stats().lost == 1).await;
    let job = env.job(id).await;
    assert_ne!(job.status, JobStatus::Completed);
    assert_eq!(job.result, None);
    logs::assert_once(Level::WARN, &["lease lost", "result_rejected"]);
    worker.stop().await;
}

/// All renewals fail while the store's clock stands still, so only the worker can detect that its leases have expired.
async fn loses_lease_locally(on: BackendKind, fault: Fault) {
    let env = WorkerEnv::still(on).await;
    env.source.always("renew", fault);
    let waiters = BlockingHandlers::new();
    let worker = waiters.start(&env, LEASE, 2);
    let begun = std::time::Instant::now();
    let id = env.enqueue("send", json!(null)).await;
    waiters.until_started(1).await;
    waiters.until_ended(1).await;
    assert!(begun.elapsed() >= LEASE, "too early");
    until("the loss is counted", async || worker.stats().lost == 1).await;
    assert_eq!(env.status(id).await, JobStatus::Running);
    assert!(waiters.jobs.lock().unwrap()[0].2.is_cancelled());
    worker.stop().await;
    assert_eq!(env.source.calls("finish"), 0);
}

async fn failing_renewals_cancel_handlers_before_expiry(on: BackendKind) {
    loses_lease_locally(on, Fault::CallLost).await;
}

async fn hanging_renewals_cancel_handlers_before_expiry(on: BackendKind) {
    loses_lease_locally(on, Fault::Waits(Arc::new(Semaphore::new(0)))).await;
}

async fn two_failed_renewals_do_not_lose_the_lease(on: BackendKind) {
    let env = WorkerEnv::still(on).await;
    env.source
        .plan("renew", &[Fault::CallLost, Fault::AnswerLost]);
    assert_lease_is_kept(env).await;
}

async fn prefetched_job_with_lost_lease_is_not_started(on: BackendKind) {
    let env = WorkerEnv::still(on).await;
    env.source.always("renew", Fault::CallLost);
    env.enqueue_many("emails", "send", 3).await;
    let waiters = BlockingHandlers::new();
    let worker = waiters.start(&env, LEASE, 1);
    waiters.until_started(1).await;
    until("all are lost", async || worker.stats().lost == 3).await;
    waiters.until_ended(1).await;
    let stats = worker.stop().await;
    assert_eq!((stats.claimed, stats.lost), (3, 3));
    assert_eq!(waiters.started.load(Ordering::SeqCst), 1);
}

async fn job_answered_after_its_lease_is_not_started(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    env.source.age_next_leases(LONG);
    let waiters = BlockingHandlers::new();
    let worker = waiters.start(&env, LONG, 2);
    let id = env.enqueue("send", json!(null)).await;
    // The store still holds the lease, so it accepts the return, and the job is claimed again.
    waiters.until_started(1).await;
    waiters.go.add_permits(1);
    assert_eq!(env.until(id, JobStatus::Completed).await.attempts, 1);
    let stats = worker.stop().await;
    assert_eq!((stats.claimed, stats.returned, stats.completed), (2, 1, 1));
    assert_eq!(waiters.started.load(Ordering::SeqCst), 1);
}

async fn old_lease_is_renewed_at_once(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    // Ends before the second heartbeat.
    env.source.age_next_leases(LONG / 2);
    let waiters = BlockingHandlers::new();
    let worker = waiters.start(&env, LONG, 2);
    let id = env.enqueue("send", json!(null)).await;
    waiters.until_started(1).await;
    until_renewed(&env, 1).await;
    waiters.go.add_permits(1);
    assert_eq!(env.until(id, JobStatus::Completed).await.attempts, 1);
    assert_eq!(worker.stop().await.lost, 0);
}

async fn rejected_progress_cancels_the_handler(on: BackendKind) {
    let env = WorkerEnv::still(on).await;
    let (started, go) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (begun, wait) = (started.clone(), go.clone());
    let handler = move |(): (), job: JobContext| {
        let (begun, wait) = (begun.clone(), wait.clone());
        async move {
            begun.add_permits(1);
            wait.acquire().await.unwrap().forget();
            assert_eq!(job.progress(&1).await?, ProgressResult::LeaseLost);
            tokio::task::yield_now().await;
            unreachable!("the worker drops the handler at its next await");
            #[allow(unreachable_code, reason = "sets the type")]
            Ok(())
        }
    };
    let worker = env.worker().lease(LONG).handler("send", handler);
    let worker = worker.build().unwrap().start();
    env.enqueue("send", json!(null)).await;
    started.acquire().await.unwrap().forget();
    env.advance(LONG);
    go.add_permits(1);
    until("the lease is lost", async || worker.stats().lost == 1).await;
    let stats = worker.stop().await;
    assert_eq!((stats.panicked, stats.lost), (0, 1));
}
