//! One worker with several queues: it claims from them in turn.

use crate::worker_env::{WorkerEnv, until};
use leasehold_core::JobStatus;
use leasehold_testbed::BackendKind;
use leasehold_worker::JobContext;
use serde_json::Value;
use std::sync::{Arc, Mutex};

on_both!(two_queues_take_turns, empty_queue_does_not_delay_the_other);

async fn two_queues_take_turns(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    env.enqueue_many("emails", "send", 40).await;
    env.enqueue_many("letters", "send", 40).await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let sink = order.clone();
    let handler = move |_: Value, job: JobContext| {
        sink.lock().unwrap().push(job.queue().to_owned());
        async { Ok(()) }
    };
    let worker = env.worker().queue("letters");
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

async fn empty_queue_does_not_delay_the_other(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    let handler = async |_: Value, _: JobContext| Ok(());
    let worker = env.worker().queue("letters").handler("send", handler);
    let worker = worker.build().unwrap().start();
    for queue in ["letters", "emails", "letters"] {
        let ids = env.enqueue_many(queue, "send", 3).await;
        env.until_all(&ids, JobStatus::Completed).await;
    }
    worker.stop().await;
}
