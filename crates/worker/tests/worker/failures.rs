//! What becomes of attempts that fail, in every way they can.

use crate::worker_env::{WorkerEnv, until};
use leasehold_core::job::JobRetry;
use leasehold_core::retry::Backoff;
use leasehold_core::{JobId, JobStatus};
use leasehold_store::job::Job;
use leasehold_store::queue::QueueChange;
use leasehold_testbed::BackendKind;
use leasehold_worker::{JobContext, JobError, Stats, WorkerBuilder};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

on_both!(
    an_error_is_tried_again_until_attempts_are_used_up,
    a_permanent_error_is_not_tried_again,
    an_error_may_say_when_to_try_again,
    a_panic_is_a_failed_attempt_and_the_worker_goes_on,
    an_attempt_that_takes_too_long_fails_and_its_handler_is_dropped,
    a_kind_without_a_handler_is_tried_again,
    a_handler_of_other_kinds_takes_what_no_other_does,
    a_payload_of_another_type_fails_for_good,
    a_cause_is_told_with_its_error,
    a_result_that_is_too_large_fails_for_good,
);

/// Tries three times, without a wait.
const THRICE: JobRetry = JobRetry {
    max_attempts: 3,
    backoff: Backoff {
        base: Duration::ZERO,
        factor: 1.0,
        max: Duration::ZERO,
        jitter: 0.0,
    },
};

async fn tried(on: BackendKind, with: impl FnOnce(WorkerBuilder) -> WorkerBuilder) -> (Job, Stats) {
    let ground = WorkerEnv::new(on).await;
    ground.change_queue(retry(THRICE)).await;
    let worker = with(ground.worker()).build().unwrap().start();
    let id = ground.enqueue("send", json!({"to": 1})).await;
    let job = ground.until(id, JobStatus::Failed).await;
    (job, worker.stop().await)
}

fn retry(retry: JobRetry) -> QueueChange {
    QueueChange {
        retry: Some(retry),
        ..QueueChange::default()
    }
}

fn said(job: &Job) -> &str {
    job.last_error.as_deref().unwrap_or_default()
}

async fn an_error_is_tried_again_until_attempts_are_used_up(on: BackendKind) {
    let handler = async |_: Value, job: JobContext| {
        Err::<(), _>(JobError::new(format!("no at {}", job.attempt())))
    };
    let (job, stats) = tried(on, |worker| worker.handler("send", handler)).await;
    assert_eq!((said(&job), job.attempts), ("no at 3", 3));
    assert_eq!((stats.retried, stats.failed, stats.completed), (2, 1, 0));
}

async fn a_permanent_error_is_not_tried_again(on: BackendKind) {
    let handler = async |_: Value, _: JobContext| Err::<(), _>(JobError::permanent("never"));
    let (job, stats) = tried(on, |worker| worker.handler("send", handler)).await;
    assert_eq!((said(&job), job.attempts), ("never", 1));
    assert_eq!((stats.retried, stats.failed), (0, 1));
}

async fn an_error_may_say_when_to_try_again(on: BackendKind) {
    let ground = WorkerEnv::still(on).await;
    let handler = async |(): (), _: JobContext| {
        let hour = Duration::from_secs(3600);
        Err::<(), _>(JobError::retry_after(hour, "come back in an hour"))
    };
    let worker = ground.worker().handler("send", handler);
    let worker = worker.build().unwrap().start();
    let id = ground.enqueue("send", json!(null)).await;
    until("it has failed once", async || worker.stats().retried == 1).await;
    let job = ground.job(id).await;
    assert_eq!(job.status, JobStatus::Queued);
    assert_eq!(job.run_at.duration_since(job.created_at).as_secs(), 3600);
    worker.stop().await;
}

async fn a_panic_is_a_failed_attempt_and_the_worker_goes_on(on: BackendKind) {
    let ground = WorkerEnv::new(on).await;
    let handler = async |number: u32, _: JobContext| {
        assert!(number != 3, "three is too many");
        Ok(())
    };
    // One at a time: the very runner that met the panic goes on.
    let worker = ground.worker().concurrency(1).handler("count", handler);
    let worker = worker.build().unwrap().start();
    ground
        .change_queue(retry(JobRetry {
            max_attempts: 1,
            ..THRICE
        }))
        .await;
    let ids: Vec<JobId> = ground.enqueue_many("emails", "count", 6).await;
    for (number, id) in ids.iter().enumerate() {
        if number == 3 {
            let job = ground.until(*id, JobStatus::Failed).await;
            assert_eq!(said(&job), "panicked: three is too many");
        } else {
            ground.until(*id, JobStatus::Completed).await;
        }
    }
    let stats = worker.stop().await;
    assert_eq!((stats.panicked, stats.failed, stats.completed), (1, 1, 5));
}

/// Says when it is dropped.
struct Told(Arc<AtomicBool>);

impl Drop for Told {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

async fn an_attempt_that_takes_too_long_fails_and_its_handler_is_dropped(on: BackendKind) {
    let ground = WorkerEnv::new(on).await;
    let dropped = Arc::new(AtomicBool::new(false));
    let told = dropped.clone();
    let handler = move |(): (), _: JobContext| {
        let told = Told(told.clone());
        async move {
            let _told = told;
            std::future::pending::<()>().await;
            Ok(())
        }
    };
    let worker = ground.worker().handler("send", handler);
    let worker = worker.build().unwrap().start();
    let id = ground.enqueue_with("send", json!(null), |new| {
        new.timeout = Some(Duration::from_millis(50));
        new.max_attempts = Some(1);
    });
    let job = ground.until(id.await, JobStatus::Failed).await;
    assert_eq!(said(&job), "timed out after 50ms");
    assert!(dropped.load(Ordering::SeqCst));
    let stats = worker.stop().await;
    assert_eq!((stats.timed_out, stats.failed), (1, 1));
}

async fn a_kind_without_a_handler_is_tried_again(on: BackendKind) {
    let handler = async |_: Value, _: JobContext| Ok(());
    let (job, stats) = tried(on, |worker| worker.handler("other", handler)).await;
    assert_eq!(said(&job), "this worker has no handler for the kind `send`");
    assert_eq!((job.attempts, stats.retried), (3, 2));
}

async fn a_handler_of_other_kinds_takes_what_no_other_does(on: BackendKind) {
    let ground = WorkerEnv::new(on).await;
    let own = async |_: Value, _: JobContext| Ok("own");
    let other = async |_: Value, job: JobContext| Ok(job.kind().to_owned());
    let worker = ground.worker().handler("send", own).other_kinds(other);
    let worker = worker.build().unwrap().start();
    for (kind, result) in [("send", "own"), ("fold", "fold"), ("burn", "burn")] {
        let id = ground.enqueue_with(kind, json!(null), |_| {}).await;
        let job = ground.until(id, JobStatus::Completed).await;
        assert_eq!(job.result.unwrap().as_str(), format!("\"{result}\""));
    }
    worker.stop().await;
}

async fn a_payload_of_another_type_fails_for_good(on: BackendKind) {
    let handler = async |_: String, _: JobContext| Ok(());
    let (job, stats) = tried(on, |worker| worker.handler("send", handler)).await;
    assert!(
        said(&job).starts_with("the payload cannot be read: invalid type: map"),
        "{}",
        said(&job)
    );
    assert_eq!((job.attempts, stats.retried), (1, 0));
}

async fn a_cause_is_told_with_its_error(on: BackendKind) {
    let handler = async |_: Value, _: JobContext| {
        let read: std::io::Result<()> = Err(std::io::Error::other("the disk is gone"));
        Ok(read.map_err(|cause| anyhow::Error::from(cause).context("the letter is unread"))?)
    };
    let (job, _) = tried(on, |worker| worker.handler("send", handler)).await;
    assert_eq!(said(&job), "the letter is unread: the disk is gone");
}

async fn a_result_that_is_too_large_fails_for_good(on: BackendKind) {
    let handler = async |_: Value, _: JobContext| Ok("x".repeat(300_000));
    let (job, _) = tried(on, |worker| worker.handler("send", handler)).await;
    assert!(
        said(&job).contains("300002 bytes of JSON"),
        "{}",
        said(&job)
    );
    assert_eq!(job.attempts, 1);
}
