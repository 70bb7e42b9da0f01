//! Several queues with one worker: they take turns.

use crate::worker_env::{WorkerEnv, until};
use leasehold_core::JobStatus;
use leasehold_testbed::BackendKind;
use leasehold_worker::JobContext;
use serde_json::Value;
use std::sync::{Arc, Mutex};

on_both!(
    two_queues_take_turns,
    an_empty_queue_keeps_the_other_from_nothing
);

async fn two_queues_take_turns(on: BackendKind) {
    let ground = WorkerEnv::new(on).await;
    ground.enqueue_many("emails", "send", 40).await;
    ground.enqueue_many("letters", "send", 40).await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let told = order.clone();
    let handler = move |_: Value, job: JobContext| {
        told.lock().unwrap().push(job.queue().to_owned());
        async { Ok(()) }
    };
    let worker = ground.worker().queue("letters");
    let worker = worker.concurrency(4).prefetch(4).handler("send", handler);
    let worker = worker.build().unwrap().start();
    until("all are done", async || worker.stats().completed == 80).await;
    let order = order.lock().unwrap().clone();
    let early = order[..40].iter().filter(|queue| *queue == "letters");
    let early = early.count();
    assert!(
        (10..=30).contains(&early),
        "{early} of the first 40 were letters"
    );
    worker.stop().await;
}

async fn an_empty_queue_keeps_the_other_from_nothing(on: BackendKind) {
    let ground = WorkerEnv::new(on).await;
    let handler = async |_: Value, _: JobContext| Ok(());
    let worker = ground.worker().queue("letters").handler("send", handler);
    let worker = worker.build().unwrap().start();
    for queue in ["letters", "emails", "letters"] {
        let ids = ground.enqueue_many(queue, "send", 3).await;
        ground.until_all(&ids, JobStatus::Completed).await;
    }
    worker.stop().await;
}
