//! Leases: kept alive while a handler works, and what happens when one is lost, whoever finds out first.

use crate::logs;
use crate::spy::Fault;
use crate::worker_env::{WorkerEnv, until};
use leasehold_core::{JobStatus, Timestamp};
use leasehold_store::queue::QueueChange;
use leasehold_testbed::BackendKind;
use leasehold_worker::{JobContext, Progress, WorkerHandle};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tracing::Level;

on_both!(
    a_long_handler_keeps_its_lease,
    all_leases_are_renewed_in_one_statement,
    a_lease_of_the_queue_is_renewed_in_time,
    a_handler_that_lost_its_lease_is_dropped_and_its_job_runs_again,
    the_answer_of_a_lost_lease_does_not_count,
    a_worker_whose_renewals_fail_gives_its_leases_up_in_time,
    a_worker_whose_renewals_hang_gives_its_leases_up_in_time,
    two_failed_renewals_cost_nothing,
    what_waits_under_a_lost_lease_is_not_started,
    refused_progress_stops_the_handler,
    a_clock_two_hours_ahead_changes_nothing,
    a_clock_two_hours_behind_changes_nothing,
);

/// Renewed every 100 ms.
const LEASE: Duration = Duration::from_millis(300);
/// Renewed every second: long enough that a busy machine does not lose it by itself.
const CALM: Duration = Duration::from_secs(3);
/// Never renewed while a test lasts.
const LONG: Duration = Duration::from_secs(3600);

/// Handlers that wait, counted and seen.
#[derive(Clone)]
struct Waiters {
    go: Arc<Semaphore>,
    started: Arc<AtomicUsize>,
    ended: Arc<AtomicUsize>,
    jobs: Arc<Mutex<Vec<(u32, i64, CancellationToken)>>>,
}

/// Counts ends, also those by being dropped.
struct Ended(Arc<AtomicUsize>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Waiters {
    fn new() -> Self {
        Self {
            go: Arc::new(Semaphore::new(0)),
            started: Arc::default(),
            ended: Arc::default(),
            jobs: Arc::default(),
        }
    }

    async fn work(self, job: JobContext) {
        let _ended = Ended(self.ended);
        let seen = (job.attempt(), job.token(), job.cancellation());
        self.jobs.lock().unwrap().push(seen);
        self.started.fetch_add(1, Ordering::SeqCst);
        self.go.acquire().await.unwrap().forget();
    }

    /// Starts a worker with these handlers.
    fn start(&self, ground: &WorkerEnv, lease: Duration, concurrency: usize) -> WorkerHandle {
        let waiters = self.clone();
        let handler = move |_: serde_json::Value, job: JobContext| {
            let waiters = waiters.clone();
            async move {
                waiters.work(job).await;
                Ok("done")
            }
        };
        let worker = ground.worker().lease(lease).concurrency(concurrency);
        let worker = worker.prefetch(3).prefetch_patience(LONG);
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

async fn until_renewed(ground: &WorkerEnv, times: usize) {
    let renewed = async || ground.spy.calls("renew") >= times;
    until("leases were renewed", renewed).await;
}

async fn keeps_its_lease(ground: WorkerEnv) {
    let waiters = Waiters::new();
    let worker = waiters.start(&ground, CALM, 2);
    let id = ground.enqueue("send", json!(null)).await;
    waiters.until_started(1).await;
    until_renewed(&ground, 5).await;
    waiters.go.add_permits(1);
    let job = ground.until(id, JobStatus::Completed).await;
    assert_eq!(job.attempts, 1);
    let stats = worker.stop().await;
    assert_eq!((stats.claimed, stats.completed, stats.lost), (1, 1, 0));
}

async fn a_long_handler_keeps_its_lease(on: BackendKind) {
    keeps_its_lease(WorkerEnv::new(on).await).await;
}

async fn a_clock_two_hours_ahead_changes_nothing(on: BackendKind) {
    let ahead = Timestamp::now() + Duration::from_secs(7200);
    keeps_its_lease(WorkerEnv::starting_at(on, ahead).await).await;
}

async fn a_clock_two_hours_behind_changes_nothing(on: BackendKind) {
    let behind = Timestamp::now() - Duration::from_secs(7200);
    keeps_its_lease(WorkerEnv::starting_at(on, behind).await).await;
}

async fn all_leases_are_renewed_in_one_statement(on: BackendKind) {
    let ground = WorkerEnv::still(on).await;
    let waiters = Waiters::new();
    let ids = ground.enqueue_many("emails", "send", 8).await;
    let worker = waiters.start(&ground, CALM, 5);
    waiters.until_started(5).await;
    until_renewed(&ground, 3).await;
    // Five run, three wait.
    assert_eq!(ground.spy.sizes("renew")[1..3], [8, 8]);
    waiters.go.add_permits(8);
    ground.until_all(&ids, JobStatus::Completed).await;
    worker.stop().await;
}

async fn a_lease_of_the_queue_is_renewed_in_time(on: BackendKind) {
    let ground = WorkerEnv::new(on).await;
    let change = QueueChange {
        lease: Some(CALM),
        ..QueueChange::default()
    };
    ground.change_queue(change).await;
    let waiters = Waiters::new();
    let handled = waiters.clone();
    let handler = move |(): (), job: JobContext| {
        let waiters = handled.clone();
        async move {
            waiters.work(job).await;
            Ok(())
        }
    };
    let worker = ground.worker().handler("send", handler);
    let worker = worker.build().unwrap().start();
    let id = ground.enqueue("send", json!(null)).await;
    waiters.until_started(1).await;
    until_renewed(&ground, 5).await;
    waiters.go.add_permits(1);
    assert_eq!(ground.until(id, JobStatus::Completed).await.attempts, 1);
    worker.stop().await;
}

async fn a_handler_that_lost_its_lease_is_dropped_and_its_job_runs_again(on: BackendKind) {
    let ground = WorkerEnv::still(on).await;
    let waiters = Waiters::new();
    let worker = waiters.start(&ground, CALM, 2);
    let id = ground.enqueue("send", json!(null)).await;
    waiters.until_started(1).await;
    ground.advance(CALM);
    waiters.until_ended(1).await;
    // As the sweeper does; it rings too.
    ground.store.job_requeue_expired(10).await.unwrap();
    waiters.until_started(2).await;
    waiters.go.add_permits(1);
    let job = ground.until(id, JobStatus::Completed).await;
    assert_eq!(job.attempts, 2);
    let stats = worker.stop().await;
    assert_eq!((stats.claimed, stats.lost, stats.completed), (2, 1, 1));
    let jobs = waiters.jobs.lock().unwrap();
    let ((first, low, lost), (second, high, kept)) = (&jobs[0], &jobs[1]);
    assert_eq!((*first, *second), (1, 2));
    assert!(high > low, "the token does not rise");
    assert!(lost.is_cancelled() && !kept.is_cancelled());
    let id = format!("job={id}");
    logs::assert_once(Level::WARN, &["lease lost", &id, "queue=emails"]);
}

async fn the_answer_of_a_lost_lease_does_not_count(on: BackendKind) {
    let ground = WorkerEnv::still(on).await;
    let waiters = Waiters::new();
    let worker = waiters.start(&ground, LONG, 1);
    let id = ground.enqueue("send", json!(null)).await;
    waiters.until_started(1).await;
    ground.advance(LONG);
    waiters.go.add_permits(1);
    until("the answer is refused", async || worker.stats().lost == 1).await;
    let job = ground.job(id).await;
    assert_ne!(job.status, JobStatus::Completed);
    assert_eq!(job.result, None);
    logs::assert_once(Level::WARN, &["lease lost", "its end was refused"]);
    worker.stop().await;
}

/// Renewals go wrong for ever; the store's clock stands still, so the worker alone can know that its leases must have run out.
async fn gives_up(on: BackendKind, fault: Fault) {
    let ground = WorkerEnv::still(on).await;
    ground.spy.always("renew", fault);
    let waiters = Waiters::new();
    let worker = waiters.start(&ground, LEASE, 2);
    let begun = std::time::Instant::now();
    let id = ground.enqueue("send", json!(null)).await;
    waiters.until_started(1).await;
    waiters.until_ended(1).await;
    assert!(begun.elapsed() >= LEASE, "too early");
    until("the loss is counted", async || worker.stats().lost == 1).await;
    assert_eq!(ground.status(id).await, JobStatus::Running);
    assert!(waiters.jobs.lock().unwrap()[0].2.is_cancelled());
    worker.stop().await;
    assert_eq!(ground.spy.calls("finish"), 0);
}

async fn a_worker_whose_renewals_fail_gives_its_leases_up_in_time(on: BackendKind) {
    gives_up(on, Fault::CallLost).await;
}

async fn a_worker_whose_renewals_hang_gives_its_leases_up_in_time(on: BackendKind) {
    gives_up(on, Fault::Waits(Arc::new(Semaphore::new(0)))).await;
}

async fn two_failed_renewals_cost_nothing(on: BackendKind) {
    let ground = WorkerEnv::still(on).await;
    ground
        .spy
        .plan("renew", &[Fault::CallLost, Fault::AnswerLost]);
    keeps_its_lease(ground).await;
}

async fn what_waits_under_a_lost_lease_is_not_started(on: BackendKind) {
    let ground = WorkerEnv::still(on).await;
    ground.spy.always("renew", Fault::CallLost);
    ground.enqueue_many("emails", "send", 3).await;
    let waiters = Waiters::new();
    let worker = waiters.start(&ground, LEASE, 1);
    waiters.until_started(1).await;
    until("all are lost", async || worker.stats().lost == 3).await;
    waiters.until_ended(1).await;
    let stats = worker.stop().await;
    assert_eq!((stats.claimed, stats.lost), (3, 3));
    assert_eq!(waiters.started.load(Ordering::SeqCst), 1);
}

async fn refused_progress_stops_the_handler(on: BackendKind) {
    let ground = WorkerEnv::still(on).await;
    let (started, go) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (begun, wait) = (started.clone(), go.clone());
    let handler = move |(): (), job: JobContext| {
        let (begun, wait) = (begun.clone(), wait.clone());
        async move {
            begun.add_permits(1);
            wait.acquire().await.unwrap().forget();
            assert_eq!(job.progress(&1).await?, Progress::LeaseLost);
            tokio::task::yield_now().await;
            unreachable!("it is dropped where it waits");
            #[allow(unreachable_code, reason = "says the type")]
            Ok(())
        }
    };
    let worker = ground.worker().lease(LONG).handler("send", handler);
    let worker = worker.build().unwrap().start();
    ground.enqueue("send", json!(null)).await;
    started.acquire().await.unwrap().forget();
    ground.advance(LONG);
    go.add_permits(1);
    until("the lease is lost", async || worker.stats().lost == 1).await;
    let stats = worker.stop().await;
    assert_eq!((stats.panicked, stats.lost), (0, 1));
}
