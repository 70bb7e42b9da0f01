//! How a worker that sleeps hears of work. None of these polls, except where nothing else is left.

use crate::spy::Fault;
use crate::worker_env::{WorkerEnv, until};
use leasehold_core::JobStatus;
use leasehold_store::job::JobStart;
use leasehold_store::queue::QueueChange;
use leasehold_testbed::BackendKind;
use leasehold_worker::{JobContext, WorkerBuilder};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

on_both!(
    a_sleeping_worker_is_woken_by_an_enqueue,
    a_sleeping_worker_wakes_when_a_job_becomes_due,
    a_sleeping_worker_wakes_for_a_retry,
    a_sleeping_worker_is_woken_when_its_queue_is_resumed,
    what_comes_right_before_the_sleep_is_found_by_the_last_look,
    a_worker_that_hears_nothing_looks_from_time_to_time,
    rings_for_other_queues_cost_few_looks,
);

fn idle(ground: &WorkerEnv) -> WorkerBuilder {
    let handler = async |_: Value, _: JobContext| Ok(());
    ground.worker().handler("send", handler)
}

/// Waits until the worker has armed and looked for the last time.
async fn until_asleep(ground: &WorkerEnv) {
    let asleep = async || {
        let (arms, looks) = (ground.spy.calls("arm"), ground.spy.calls("claim"));
        tokio::task::yield_now().await;
        arms > 0 && looks > arms
    };
    until("the worker sleeps", asleep).await;
}

async fn a_sleeping_worker_is_woken_by_an_enqueue(on: BackendKind) {
    let ground = WorkerEnv::new(on).await;
    let worker = idle(&ground).build().unwrap().start();
    for _ in 0..3 {
        until_asleep(&ground).await;
        let id = ground.enqueue("send", json!(null)).await;
        ground.until(id, JobStatus::Completed).await;
    }
    worker.stop().await;
}

async fn a_sleeping_worker_wakes_when_a_job_becomes_due(on: BackendKind) {
    let ground = WorkerEnv::new(on).await;
    let worker = idle(&ground).build().unwrap().start();
    until_asleep(&ground).await;
    let soon = JobStart::In(Duration::from_millis(200));
    let id = ground.enqueue_with("send", json!(null), |new| new.start = soon);
    let job = ground.until(id.await, JobStatus::Completed).await;
    assert!(job.finished_at.unwrap() >= job.created_at + Duration::from_millis(200));
    worker.stop().await;
}

async fn a_sleeping_worker_wakes_for_a_retry(on: BackendKind) {
    let ground = WorkerEnv::new(on).await;
    let handler = async |(): (), job: JobContext| {
        if job.attempt() == 1 {
            let soon = Duration::from_millis(100);
            return Err(leasehold_worker::JobError::retry_after(soon, "not yet"));
        }
        Ok(())
    };
    let worker = ground.worker().handler("send", handler);
    let worker = worker.build().unwrap().start();
    let id = ground.enqueue("send", json!(null)).await;
    let job = ground.until(id, JobStatus::Completed).await;
    assert_eq!(job.attempts, 2);
    worker.stop().await;
}

async fn a_sleeping_worker_is_woken_when_its_queue_is_resumed(on: BackendKind) {
    let ground = WorkerEnv::new(on).await;
    let paused = |paused| QueueChange {
        paused: Some(paused),
        ..QueueChange::default()
    };
    ground.change_queue(paused(true)).await;
    let id = ground.enqueue("send", json!(null)).await;
    let worker = idle(&ground).build().unwrap().start();
    until_asleep(&ground).await;
    assert_eq!(ground.status(id).await, JobStatus::Queued);
    ground.change_queue(paused(false)).await;
    ground.until(id, JobStatus::Completed).await;
    worker.stop().await;
}

async fn what_comes_right_before_the_sleep_is_found_by_the_last_look(on: BackendKind) {
    let ground = WorkerEnv::new(on).await;
    ground.spy.deafen();
    let barrier = Arc::new(Semaphore::new(0));
    ground.spy.plan("arm", &[Fault::Waits(barrier.clone())]);
    let worker = idle(&ground).build().unwrap().start();
    until("it is about to sleep", async || {
        ground.spy.calls("arm") == 1
    })
    .await;
    let id = ground.enqueue("send", json!(null)).await;
    barrier.add_permits(1);
    ground.until(id, JobStatus::Completed).await;
    worker.stop().await;
}

async fn a_worker_that_hears_nothing_looks_from_time_to_time(on: BackendKind) {
    let ground = WorkerEnv::new(on).await;
    ground.spy.deafen();
    ground.spy.always("arm", Fault::CallLost);
    let often = Duration::from_millis(50);
    let worker = idle(&ground).poll_interval(often).build().unwrap().start();
    until("it sleeps", async || ground.spy.calls("arm") > 0).await;
    let id = ground.enqueue("send", json!(null)).await;
    ground.until(id, JobStatus::Completed).await;
    worker.stop().await;
}

async fn rings_for_other_queues_cost_few_looks(on: BackendKind) {
    let ground = WorkerEnv::new(on).await;
    let worker = idle(&ground).build().unwrap().start();
    until_asleep(&ground).await;
    let (begun, before) = (std::time::Instant::now(), ground.spy.calls("claim"));
    for _ in 0..300 {
        ground.enqueue_many("letters", "send", 1).await;
    }
    let looks = ground.spy.calls("claim") - before;
    // Two or three looks for each rest of 100 ms, and some before it is used to it.
    let most = 16 + 3 * begun.elapsed().as_millis() / 100;
    assert!(looks as u128 <= most, "{looks} looks, more than {most}");
    // And it hears its own work all the same.
    let id = ground.enqueue("send", json!(null)).await;
    ground.until(id, JobStatus::Completed).await;
    worker.stop().await;
}
