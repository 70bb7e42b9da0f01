//! Failed attempts: errors, panics, timeouts, unknown kinds, invalid payloads and results.

use crate::logs;
use crate::worker_env::{WorkerEnv, until};
use leasehold_core::job::JobRetry;
use leasehold_core::retry::Backoff;
use leasehold_core::{JobId, JobStatus};
use leasehold_store::job::{Job, NewJob};
use leasehold_store::queue::QueueChange;
use leasehold_testbed::BackendKind;
use leasehold_worker::{JobContext, JobError, Stats, WorkerBuilder};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tracing::Level;

on_both!(
    error_is_retried_until_max_attempts,
    permanent_error_is_not_retried,
    error_can_set_the_retry_delay,
    panic_fails_the_attempt_and_the_worker_continues,
    timed_out_attempt_fails_and_its_handler_is_dropped,
    job_of_unknown_kind_costs_no_attempt,
    default_handler_runs_kinds_without_their_own,
    payload_of_wrong_type_fails_permanently,
    error_text_includes_its_cause,
    too_large_result_fails_permanently,
);

/// Three attempts without a delay.
const THREE_ATTEMPTS: JobRetry = JobRetry {
    max_attempts: 3,
    backoff: Backoff {
        base: Duration::ZERO,
        factor: 1.0,
        max: Duration::ZERO,
        jitter: 0.0,
    },
};

async fn run_to_failure(
    on: BackendKind,
    with: impl FnOnce(WorkerBuilder) -> WorkerBuilder,
) -> (Job, Stats) {
    let env = WorkerEnv::new(on).await;
    env.change_queue(retry(THREE_ATTEMPTS)).await;
    let worker = with(env.worker()).build().unwrap().start();
    let id = env.enqueue("send", json!({"to": 1})).await;
    let job = env.until(id, JobStatus::Failed).await;
    (job, worker.stop().await)
}

fn retry(retry: JobRetry) -> QueueChange {
    QueueChange {
        retry: Some(retry),
        ..QueueChange::default()
    }
}

fn last_error(job: &Job) -> &str {
    job.last_error.as_deref().unwrap_or_default()
}

async fn error_is_retried_until_max_attempts(on: BackendKind) {
    let handler = async |_: Value, job: JobContext| {
        Err::<(), _>(JobError::new(format!("no at {}", job.attempt())))
    };
    let (job, stats) = run_to_failure(on, |worker| worker.handler("send", handler)).await;
    assert_eq!((last_error(&job), job.attempts), ("no at 3", 3));
    assert_eq!((stats.retried, stats.failed, stats.completed), (2, 1, 0));
}

async fn permanent_error_is_not_retried(on: BackendKind) {
    let handler = async |_: Value, _: JobContext| Err::<(), _>(JobError::permanent("never"));
    let (job, stats) = run_to_failure(on, |worker| worker.handler("send", handler)).await;
    assert_eq!((last_error(&job), job.attempts), ("never", 1));
    assert_eq!((stats.retried, stats.failed), (0, 1));
}

async fn error_can_set_the_retry_delay(on: BackendKind) {
    let env = WorkerEnv::still(on).await;
    let handler = async |(): (), _: JobContext| {
        let hour = Duration::from_secs(3600);
        Err::<(), _>(JobError::retry_after(hour, "come back in an hour"))
    };
    let worker = env.worker().handler("send", handler);
    let worker = worker.build().unwrap().start();
    let id = env.enqueue("send", json!(null)).await;
    until("it has failed once", async || worker.stats().retried == 1).await;
    let job = env.job(id).await;
    assert_eq!(job.status, JobStatus::Queued);
    assert_eq!(job.run_at.duration_since(job.created_at).as_secs(), 3600);
    worker.stop().await;
}

async fn panic_fails_the_attempt_and_the_worker_continues(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    let handler = async |number: u32, _: JobContext| {
        assert!(number != 3, "three is too many");
        Ok(())
    };
    // One at a time: the runner that caught the panic continues.
    let worker = env.worker().concurrency(1).handler("count", handler);
    let worker = worker.build().unwrap().start();
    env.change_queue(retry(JobRetry {
        max_attempts: 1,
        ..THREE_ATTEMPTS
    }))
    .await;
    let ids: Vec<JobId> = env.enqueue_many("emails", "count", 6).await;
    for (number, id) in ids.iter().enumerate() {
        if number == 3 {
            let job = env.until(*id, JobStatus::Failed).await;
            assert_eq!(last_error(&job), "panicked: three is too many");
        } else {
            env.until(*id, JobStatus::Completed).await;
        }
    }
    let stats = worker.stop().await;
    assert_eq!((stats.panicked, stats.failed, stats.completed), (1, 1, 5));
}

/// Sets the flag when it is dropped.
struct DropSignal(Arc<AtomicBool>);

impl Drop for DropSignal {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

async fn timed_out_attempt_fails_and_its_handler_is_dropped(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    let dropped = Arc::new(AtomicBool::new(false));
    let signal = dropped.clone();
    let handler = move |(): (), _: JobContext| {
        let signal = DropSignal(signal.clone());
        async move {
            let _signal = signal;
            std::future::pending::<()>().await;
            Ok(())
        }
    };
    let worker = env.worker().handler("send", handler);
    let worker = worker.build().unwrap().start();
    let id = env.enqueue_with("send", json!(null), |new| {
        new.timeout = Some(Duration::from_millis(50));
        new.max_attempts = Some(1);
    });
    let job = env.until(id.await, JobStatus::Failed).await;
    assert_eq!(last_error(&job), "timed out after 50ms");
    assert!(dropped.load(Ordering::SeqCst));
    let stats = worker.stop().await;
    assert_eq!((stats.timed_out, stats.failed), (1, 1));
}

async fn job_of_unknown_kind_costs_no_attempt(on: BackendKind) {
    let env = WorkerEnv::still(on).await;
    let handler = async |_: Value, _: JobContext| Ok(());
    let poll = Duration::from_millis(20);
    let old = env.worker().poll_interval(poll).handler("other", handler);
    let old = old.build().unwrap().start();
    let only_once = |new: &mut NewJob| new.max_attempts = Some(1);
    let ids = [
        env.enqueue_with("send", json!(null), only_once).await,
        env.enqueue_with("send", json!(null), only_once).await,
    ];
    for claims in [2, 4, 6] {
        until("both wait", async || old.stats().snoozed == claims).await;
        for id in ids {
            let job = env.until(id, JobStatus::Queued).await;
            assert_eq!((job.attempts, job.last_error), (0, None));
            let wait = job.run_at.duration_since(env.store.now().await.unwrap());
            assert!(!wait.is_negative() && !wait.is_zero(), "{wait:?}");
        }
        env.advance(Duration::from_secs(60));
    }
    let stats = old.stop().await;
    assert_eq!((stats.failed, stats.retried), (0, 0));
    let name = "no handler for this kind of job; its jobs wait for a worker that has one";
    logs::assert_once(Level::WARN, &[name, " kind=send", " queue=emails"]);
    env.advance(Duration::from_secs(60));
    let new = env.worker().handler("send", handler);
    let new = new.build().unwrap().start();
    for id in ids {
        assert_eq!(env.until(id, JobStatus::Completed).await.attempts, 1);
    }
    new.stop().await;
}

async fn default_handler_runs_kinds_without_their_own(on: BackendKind) {
    let env = WorkerEnv::new(on).await;
    let own = async |_: Value, _: JobContext| Ok("own");
    let other = async |_: Value, job: JobContext| Ok(job.kind().to_owned());
    let worker = env.worker().handler("send", own).default_handler(other);
    let worker = worker.build().unwrap().start();
    for (kind, result) in [("send", "own"), ("fold", "fold"), ("burn", "burn")] {
        let id = env.enqueue_with(kind, json!(null), |_| {}).await;
        let job = env.until(id, JobStatus::Completed).await;
        assert_eq!(job.result.unwrap().as_str(), format!("\"{result}\""));
    }
    worker.stop().await;
}

async fn payload_of_wrong_type_fails_permanently(on: BackendKind) {
    let handler = async |_: String, _: JobContext| Ok(());
    let (job, stats) = run_to_failure(on, |worker| worker.handler("send", handler)).await;
    assert!(
        last_error(&job).starts_with("failed to deserialize the payload: invalid type: map"),
        "{}",
        last_error(&job)
    );
    assert_eq!((job.attempts, stats.retried), (1, 0));
}

async fn error_text_includes_its_cause(on: BackendKind) {
    let handler = async |_: Value, _: JobContext| {
        let read: std::io::Result<()> = Err(std::io::Error::other("the disk is gone"));
        Ok(read.map_err(|cause| anyhow::Error::from(cause).context("the letter is unread"))?)
    };
    let (job, _) = run_to_failure(on, |worker| worker.handler("send", handler)).await;
    assert_eq!(last_error(&job), "the letter is unread: the disk is gone");
}

async fn too_large_result_fails_permanently(on: BackendKind) {
    let handler = async |_: Value, _: JobContext| Ok("x".repeat(300_000));
    let (job, _) = run_to_failure(on, |worker| worker.handler("send", handler)).await;
    assert!(
        last_error(&job).contains("300002 bytes of JSON"),
        "{}",
        last_error(&job)
    );
    assert_eq!(job.attempts, 1);
}
