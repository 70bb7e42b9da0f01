//! How many jobs are in hand and how their ends are written down: together where there is company, at once where there is none.

use crate::logs;
use crate::spy::Fault;
use crate::worker_env::{WorkerEnv, until};
use leasehold_core::JobStatus;
use leasehold_testbed::BackendKind;
use leasehold_worker::{JobContext, WorkerBuilder};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Semaphore;
use tracing::Level;

on_both!(
    ends_that_come_while_others_are_written_go_together,
    a_lone_end_is_written_at_once,
    no_more_run_than_may_and_no_more_wait_than_may,
    a_worker_without_prefetching_holds_only_what_runs,
    jobs_that_wait_behind_slow_handlers_are_given_back,
    ends_survive_an_outage,
    an_end_whose_answer_was_lost_is_written_once,
    an_end_that_cannot_be_written_fails_and_says_why,
    one_that_cannot_be_written_holds_up_no_other,
    only_the_end_that_was_not_written_is_sent_again,
    claims_survive_an_outage,
);

/// A worker whose handlers do nothing but count.
fn counting(ground: &WorkerEnv) -> (WorkerBuilder, Arc<AtomicUsize>) {
    let done = Arc::new(AtomicUsize::new(0));
    let count = done.clone();
    let handler = move |_: Value, _: JobContext| {
        count.fetch_add(1, Ordering::SeqCst);
        async { Ok(()) }
    };
    (ground.worker().handler("send", handler), done)
}

async fn until_done(done: &AtomicUsize, count: usize) {
    let enough = async || done.load(Ordering::SeqCst) == count;
    until("all handlers are done", enough).await;
}

async fn ends_that_come_while_others_are_written_go_together(on: BackendKind) {
    let ground = WorkerEnv::new(on).await;
    let barrier = Arc::new(Semaphore::new(0));
    ground.spy.plan("finish", &[Fault::Waits(barrier.clone())]);
    let (worker, done) = counting(&ground);
    let worker = worker.build().unwrap().start();
    let first = ground.enqueue("send", json!(null)).await;
    until("one is written", async || ground.spy.calls("finish") == 1).await;
    let ids = ground.enqueue_many("emails", "send", 20).await;
    until_done(&done, 21).await;
    barrier.add_permits(1);
    ground.until(first, JobStatus::Completed).await;
    ground.until_all(&ids, JobStatus::Completed).await;
    assert_eq!(ground.spy.sizes("finish"), [1, 20]);
    let stats = worker.stop().await;
    assert_eq!((stats.completed, stats.finishes), (21, 2));
}

async fn a_lone_end_is_written_at_once(on: BackendKind) {
    let ground = WorkerEnv::new(on).await;
    let (worker, _) = counting(&ground);
    let worker = worker.build().unwrap().start();
    for _ in 0..3 {
        let id = ground.enqueue("send", json!(null)).await;
        ground.until(id, JobStatus::Completed).await;
    }
    assert_eq!(ground.spy.sizes("finish"), [1, 1, 1]);
    worker.stop().await;
}

/// Handlers that wait; how many started, and how many permits let them go.
fn waiting(ground: &WorkerEnv) -> (WorkerBuilder, Arc<AtomicUsize>, Arc<Semaphore>) {
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
    (ground.worker().handler("send", handler), started, go)
}

async fn no_more_run_than_may_and_no_more_wait_than_may(on: BackendKind) {
    let ground = WorkerEnv::new(on).await;
    let ids = ground.enqueue_many("emails", "send", 20).await;
    let (worker, started, go) = waiting(&ground);
    let worker = worker.concurrency(2).prefetch(3);
    let worker = worker
        .prefetch_patience(crate::NEVER)
        .build()
        .unwrap()
        .start();
    until("some are claimed", async || worker.stats().claimed == 5).await;
    until_done(&started, 2).await;
    let counts = ground.store.queue_counts("emails").await.unwrap();
    assert_eq!((counts.running, counts.ready), (5, 15));
    go.add_permits(20);
    ground.until_all(&ids, JobStatus::Completed).await;
    let claims = ground.spy.claims();
    assert!(claims.iter().all(|claim| claim.max <= 5), "{claims:?}");
    worker.stop().await;
}

async fn a_worker_without_prefetching_holds_only_what_runs(on: BackendKind) {
    let ground = WorkerEnv::new(on).await;
    let ids = ground.enqueue_many("emails", "send", 6).await;
    let (worker, started, go) = waiting(&ground);
    let worker = worker.concurrency(2).prefetch(0).build().unwrap().start();
    until_done(&started, 2).await;
    assert_eq!(worker.stats().claimed, 2);
    go.add_permits(6);
    ground.until_all(&ids, JobStatus::Completed).await;
    assert!(ground.spy.claims().iter().all(|claim| claim.max <= 2));
    worker.stop().await;
}

async fn jobs_that_wait_behind_slow_handlers_are_given_back(on: BackendKind) {
    let ground = WorkerEnv::new(on).await;
    let ids = ground.enqueue_many("emails", "send", 3).await;
    let (worker, started, go) = waiting(&ground);
    let worker = worker.concurrency(1).build().unwrap().start();
    until_done(&started, 1).await;
    until("one is given back", async || worker.stats().given_back == 1).await;
    // For a while no more than can run is claimed.
    go.add_permits(1);
    until_done(&started, 2).await;
    ground.until(ids[0], JobStatus::Completed).await;
    let counts = ground.store.queue_counts("emails").await.unwrap();
    assert_eq!((counts.running, counts.ready), (1, 1));
    go.add_permits(2);
    ground.until_all(&ids, JobStatus::Completed).await;
    assert_eq!(worker.stop().await.completed, 3);
}

async fn ends_survive_an_outage(on: BackendKind) {
    let ground = WorkerEnv::new(on).await;
    ground
        .spy
        .plan("finish", &[Fault::CallLost, Fault::CallLost]);
    let (worker, done) = counting(&ground);
    let worker = worker.build().unwrap().start();
    let id = ground.enqueue("send", json!(null)).await;
    let job = ground.until(id, JobStatus::Completed).await;
    assert_eq!((job.attempts, done.load(Ordering::SeqCst)), (1, 1));
    let stats = worker.stop().await;
    assert_eq!((stats.completed, stats.lost), (1, 0));
    logs::assert_once(Level::ERROR, &["cannot write down how jobs ended"]);
}

async fn an_end_whose_answer_was_lost_is_written_once(on: BackendKind) {
    let ground = WorkerEnv::new(on).await;
    ground.spy.plan("finish", &[Fault::AnswerLost]);
    let (worker, done) = counting(&ground);
    let worker = worker.build().unwrap().start();
    let id = ground.enqueue("send", json!(null)).await;
    until("nobody is left", async || worker.stats().lost == 1).await;
    let job = ground.job(id).await;
    assert_eq!((job.status, job.attempts), (JobStatus::Completed, 1));
    assert_eq!(done.load(Ordering::SeqCst), 1);
    worker.stop().await;
}

async fn an_end_that_cannot_be_written_fails_and_says_why(on: BackendKind) {
    let ground = WorkerEnv::new(on).await;
    ground.spy.plan("finish", &[Fault::Refused]);
    let (worker, _) = counting(&ground);
    let worker = worker.build().unwrap().start();
    let id = ground.enqueue_with("send", json!(null), |new| new.max_attempts = Some(1));
    let job = ground.until(id.await, JobStatus::Failed).await;
    let said = job.last_error.unwrap();
    assert!(said.starts_with("its end cannot be written down"), "{said}");
    worker.stop().await;
}

async fn one_that_cannot_be_written_holds_up_no_other(on: BackendKind) {
    let ground = WorkerEnv::new(on).await;
    let barrier = Arc::new(Semaphore::new(0));
    let faults = [Fault::Waits(barrier.clone()), Fault::Refused];
    ground.spy.plan("finish", &faults);
    let (worker, done) = counting(&ground);
    let worker = worker.build().unwrap().start();
    ground.enqueue("send", json!(null)).await;
    until("one is written", async || ground.spy.calls("finish") == 1).await;
    let ids = ground.enqueue_many("emails", "send", 4).await;
    until_done(&done, 5).await;
    barrier.add_permits(1);
    ground.until_all(&ids, JobStatus::Completed).await;
    assert_eq!(ground.spy.sizes("finish"), [1, 4, 1, 1, 1, 1]);
    worker.stop().await;
}

async fn only_the_end_that_was_not_written_is_sent_again(on: BackendKind) {
    let ground = WorkerEnv::new(on).await;
    let barrier = Arc::new(Semaphore::new(0));
    let faults = [Fault::Waits(barrier.clone()), Fault::FirstNotWritten];
    ground.spy.plan("finish", &faults);
    let (worker, done) = counting(&ground);
    let worker = worker.build().unwrap().start();
    ground.enqueue("send", json!(null)).await;
    until("one is written", async || ground.spy.calls("finish") == 1).await;
    let ids = ground.enqueue_many("emails", "send", 4).await;
    until_done(&done, 5).await;
    barrier.add_permits(1);
    ground.until_all(&ids, JobStatus::Completed).await;
    assert_eq!(ground.spy.sizes("finish"), [1, 4, 1]);
    let stats = worker.stop().await;
    assert_eq!((stats.completed, stats.lost, stats.unwritten), (5, 0, 0));
    assert_eq!(done.load(Ordering::SeqCst), 5, "each ran once");
}

async fn claims_survive_an_outage(on: BackendKind) {
    let ground = WorkerEnv::new(on).await;
    ground
        .spy
        .plan("claim", &[Fault::CallLost, Fault::CallLost]);
    let id = ground.enqueue("send", json!(null)).await;
    let (worker, _) = counting(&ground);
    let worker = worker.build().unwrap().start();
    ground.until(id, JobStatus::Completed).await;
    logs::assert_once(Level::ERROR, &["cannot claim jobs"]);
    worker.stop().await;
}
