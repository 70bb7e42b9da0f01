//! The context that a handler gets, and the meaning of its return value.

use crate::worker_env::WorkerEnv;
use leasehold_core::JobStatus;
use leasehold_store::job::JobStart;
use leasehold_testbed::BackendKind;
use leasehold_worker::{JobContext, JobError, Outcome, ProgressResult};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;

on_both!(
    payload_is_deserialized_and_result_saved,
    handler_without_a_result_saves_none,
    context_has_the_properties_of_the_job,
    snoozed_job_runs_later_without_counting_an_attempt,
    next_attempt_reads_saved_progress,
    kind_selects_the_handler,
);

#[derive(Deserialize, Serialize)]
struct Letter {
    to: String,
}

async fn payload_is_deserialized_and_result_saved(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    let worker = env
        .worker()
        .handler("send", async |letter: Letter, _: JobContext| {
            Ok(json!({"sent_to": letter.to}))
        });
    let worker = worker.build().unwrap().start();
    let id = env.enqueue("send", json!({"to": "ada"})).await;
    let job = env.until(id, JobStatus::Completed).await;
    let result: serde_json::Value = job.result.unwrap().read().unwrap();
    assert_eq!(result, json!({"sent_to": "ada"}));
    assert_eq!(job.attempts, 1);
    let stats = worker.stop().await;
    assert_eq!((stats.claimed, stats.completed, stats.lost), (1, 1, 0));
}

async fn handler_without_a_result_saves_none(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    let worker = env
        .worker()
        .handler("send", async |_: Letter, _: JobContext| Ok(()));
    let worker = worker.build().unwrap().start();
    let id = env.enqueue("send", json!({"to": "ada"})).await;
    let job = env.until(id, JobStatus::Completed).await;
    assert_eq!(job.result, None);
    worker.stop().await;
}

async fn context_has_the_properties_of_the_job(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    let seen = Arc::new(Mutex::new(None));
    let sink = seen.clone();
    let handler = move |_: Letter, job: JobContext| {
        *sink.lock().unwrap() = Some(job);
        async { Ok(()) }
    };
    let worker = env.worker().name("me").handler("send", handler);
    let worker = worker.build().unwrap().start();
    let id = env.enqueue_with("send", json!({"to": "ada"}), |new| {
        new.max_attempts = Some(1);
        new.timeout = Some(Duration::from_secs(60));
        new.trace_context = Some("00-trace".to_owned());
    });
    let id = id.await;
    let stored = env.until(id, JobStatus::Completed).await;
    let job = seen.lock().unwrap().take().unwrap();
    assert_eq!(job.id(), id);
    assert_eq!(
        (job.queue(), job.kind(), job.worker()),
        ("emails", "send", "me")
    );
    assert_eq!((job.attempt(), job.max_attempts()), (1, 1));
    assert!(job.is_last_attempt());
    assert_eq!(job.trace_context(), Some("00-trace"));
    assert_eq!(job.created_at(), stored.created_at);
    assert_eq!(job.token(), stored.token);
    assert!(job.deadline().is_some());
    assert_eq!(job.payload::<Letter>().unwrap().to, "ada");
    assert_eq!(job.last_progress::<u32>().unwrap(), None);
    worker.stop().await;
}

async fn snoozed_job_runs_later_without_counting_an_attempt(on: BackendKind) {
    let env = WorkerEnv::still(on).await;
    let tokens = Arc::new(Mutex::new(Vec::new()));
    let sink = tokens.clone();
    let handler = move |(): (), job: JobContext| {
        let mut tokens = sink.lock().unwrap();
        tokens.push((job.attempt(), job.token()));
        let first = tokens.len() == 1;
        async move {
            Ok(if first {
                Outcome::snooze(Duration::from_secs(60))
            } else {
                Outcome::done(&"at last")?
            })
        }
    };
    let poll = Duration::from_millis(20);
    let worker = env.worker().poll_interval(poll).handler("send", handler);
    let worker = worker.build().unwrap().start();
    let id = env.enqueue("send", json!(null)).await;
    crate::worker_env::until("it is snoozed", async || worker.stats().snoozed == 1).await;
    assert_eq!(env.status(id).await, JobStatus::Queued);
    env.advance(Duration::from_secs(60));
    let job = env.until(id, JobStatus::Completed).await;
    assert_eq!(job.attempts, 1);
    let tokens = tokens.lock().unwrap().clone();
    assert_eq!((tokens[0].0, tokens[1].0), (1, 1));
    assert!(
        tokens[1].1 > tokens[0].1,
        "the fencing token does not increase"
    );
    worker.stop().await;
}

async fn next_attempt_reads_saved_progress(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    let handler = async |(): (), job: JobContext| {
        let done: u32 = job.last_progress()?.unwrap_or(0);
        assert_eq!(job.progress(&(done + 1)).await?, ProgressResult::Saved);
        if done == 0 {
            return Err(JobError::retry_after(Duration::ZERO, "half way"));
        }
        assert_eq!(job.last_error(), Some("half way"));
        Ok(done)
    };
    let worker = env.worker().handler("send", handler);
    let worker = worker.build().unwrap().start();
    let id = env.enqueue("send", json!(null)).await;
    let job = env.until(id, JobStatus::Completed).await;
    assert_eq!(job.result.unwrap().as_str(), "1");
    assert_eq!(job.attempts, 2);
    worker.stop().await;
}

async fn kind_selects_the_handler(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    let worker = env
        .worker()
        .handler("one", async |(): (), _: JobContext| Ok(1))
        .handler("two", async |(): (), _: JobContext| Ok(2));
    let later = JobStart::In(Duration::from_millis(50));
    let two = env.enqueue_with("two", json!(null), |new| new.start = later);
    let two = two.await;
    let one = env.enqueue("one", json!(null)).await;
    let worker = worker.build().unwrap().start();
    for (id, expected) in [(one, "1"), (two, "2")] {
        let job = env.until(id, JobStatus::Completed).await;
        assert_eq!(job.result.unwrap().as_str(), expected);
    }
    worker.stop().await;
}
