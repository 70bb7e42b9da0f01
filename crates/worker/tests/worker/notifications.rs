//! Waking a sleeping worker by notifications and due times. Only the fallback tests poll.

use crate::faulty_source::Fault;
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
    job_enqueued_before_the_sleep_is_found_by_the_final_poll,
    worker_without_notifications_polls,
    notifications_for_other_queues_cause_few_polls,
);

fn idle(env: &WorkerEnv) -> WorkerBuilder {
    let handler = async |_: Value, _: JobContext| Ok(());
    env.worker().handler("send", handler)
}

/// Waits until the worker has armed a notification and made its final poll.
async fn until_asleep(env: &WorkerEnv) {
    let asleep = async || {
        let (arms, polls) = (
            env.source.calls("arm_notification"),
            env.source.calls("claim"),
        );
        tokio::task::yield_now().await;
        arms > 0 && polls > arms
    };
    until("the worker sleeps", asleep).await;
}

async fn a_sleeping_worker_is_woken_by_an_enqueue(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    let worker = idle(&env).build().unwrap().start();
    for _ in 0..3 {
        until_asleep(&env).await;
        let id = env.enqueue("send", json!(null)).await;
        env.until(id, JobStatus::Completed).await;
    }
    worker.stop().await;
}

async fn a_sleeping_worker_wakes_when_a_job_becomes_due(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    let worker = idle(&env).build().unwrap().start();
    until_asleep(&env).await;
    let soon = JobStart::In(Duration::from_millis(200));
    let id = env.enqueue_with("send", json!(null), |new| new.start = soon);
    let job = env.until(id.await, JobStatus::Completed).await;
    assert!(job.finished_at.unwrap() >= job.created_at + Duration::from_millis(200));
    worker.stop().await;
}

async fn a_sleeping_worker_wakes_for_a_retry(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    let handler = async |(): (), job: JobContext| {
        if job.attempt() == 1 {
            let soon = Duration::from_millis(100);
            return Err(leasehold_worker::JobError::retry_after(soon, "not yet"));
        }
        Ok(())
    };
    let worker = env.worker().handler("send", handler);
    let worker = worker.build().unwrap().start();
    let id = env.enqueue("send", json!(null)).await;
    let job = env.until(id, JobStatus::Completed).await;
    assert_eq!(job.attempts, 2);
    worker.stop().await;
}

async fn a_sleeping_worker_is_woken_when_its_queue_is_resumed(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    let paused = |paused| QueueChange {
        paused: Some(paused),
        ..QueueChange::default()
    };
    env.change_queue(paused(true)).await;
    let id = env.enqueue("send", json!(null)).await;
    let worker = idle(&env).build().unwrap().start();
    until_asleep(&env).await;
    assert_eq!(env.status(id).await, JobStatus::Queued);
    env.change_queue(paused(false)).await;
    env.until(id, JobStatus::Completed).await;
    worker.stop().await;
}

async fn job_enqueued_before_the_sleep_is_found_by_the_final_poll(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    env.source.drop_notifications();
    let barrier = Arc::new(Semaphore::new(0));
    env.source
        .plan("arm_notification", &[Fault::Waits(barrier.clone())]);
    let worker = idle(&env).build().unwrap().start();
    until("the worker is about to sleep", async || {
        env.source.calls("arm_notification") == 1
    })
    .await;
    let id = env.enqueue("send", json!(null)).await;
    barrier.add_permits(1);
    env.until(id, JobStatus::Completed).await;
    worker.stop().await;
}

async fn worker_without_notifications_polls(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    env.source.drop_notifications();
    env.source.always("arm_notification", Fault::CallLost);
    let often = Duration::from_millis(50);
    let worker = idle(&env).poll_interval(often).build().unwrap().start();
    until("the worker sleeps", async || {
        env.source.calls("arm_notification") > 0
    })
    .await;
    let id = env.enqueue("send", json!(null)).await;
    env.until(id, JobStatus::Completed).await;
    worker.stop().await;
}

async fn notifications_for_other_queues_cause_few_polls(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    let worker = idle(&env).build().unwrap().start();
    until_asleep(&env).await;
    let (begun, before) = (std::time::Instant::now(), env.source.calls("claim"));
    for _ in 0..300 {
        env.enqueue_many("letters", "send", 1).await;
    }
    let polls = env.source.calls("claim") - before;
    // Two or three polls per backoff of 100 ms, and some before the backoff grows.
    let most = 16 + 3 * begun.elapsed().as_millis() / 100;
    assert!(
        polls as u128 <= most,
        "{polls} polls, expected at most {most}"
    );
    // The worker still gets its own notifications.
    let id = env.enqueue("send", json!(null)).await;
    env.until(id, JobStatus::Completed).await;
    worker.stop().await;
}
