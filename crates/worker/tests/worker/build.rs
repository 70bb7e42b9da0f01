//! What is refused before a worker starts.

use async_trait::async_trait;
use leasehold_core::job::{JobClaim, JobFinish, JobFinished, JobRef, JobsClaimed};
use leasehold_core::{JobId, JsonText};
use leasehold_worker::{
    BuildError, JobContext, JobError, JobSource, SourceResult, Worker, WorkerBuilder,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// A source that has nothing; if it is broken it panics when asked.
#[derive(Default)]
struct Nothing {
    broken: bool,
}

#[async_trait]
impl JobSource for Nothing {
    async fn claim(&self, _: &JobClaim) -> SourceResult<JobsClaimed> {
        assert!(!self.broken, "this source is broken");
        Ok(JobsClaimed::default())
    }

    async fn renew(&self, _: &str, _: &[JobRef], _: Duration) -> SourceResult<Vec<JobId>> {
        Ok(Vec::new())
    }

    async fn finish(&self, _: &str, _: &[JobFinish]) -> SourceResult<Vec<JobFinished>> {
        Ok(Vec::new())
    }

    async fn progress(&self, _: &str, _: JobRef, _: &JsonText) -> SourceResult<bool> {
        Ok(false)
    }

    async fn arm(&self) -> SourceResult<bool> {
        Ok(false)
    }

    fn bell(&self) -> watch::Receiver<u64> {
        watch::channel(0).1
    }
}

fn empty() -> WorkerBuilder {
    Worker::of(Arc::new(Nothing::default()))
}

async fn nothing(_: (), _: JobContext) -> Result<(), JobError> {
    Ok(())
}

#[test]
fn what_cannot_work_is_refused_by_name() {
    let whole = || empty().queue("a").handler("b", nothing);
    let cases = [
        (empty().handler("b", nothing), "a worker needs a queue"),
        (empty().queue("a"), "a worker needs a handler"),
        (
            whole().handler("b", nothing),
            "the kind `b` has two handlers",
        ),
        (whole().queue("a"), "the queue `a` is named twice"),
        (whole().queue(" "), "the queue ` ` must not be empty"),
        (
            whole().name("a\0b"),
            "the worker `a\0b` must not contain control characters (found U+0000)",
        ),
        (
            whole().concurrency(0),
            "concurrency must be from 1 to 10000, is 0",
        ),
        (
            whole().prefetch(10_001),
            "prefetch must be from 0 to 10000, is 10001",
        ),
    ];
    for (builder, expected) in cases {
        let refused: BuildError = builder.build().err().unwrap();
        assert_eq!(refused.to_string(), expected);
    }
}

#[test]
fn every_worker_has_a_name_of_its_own() {
    let build = || empty().queue("a").handler("b", nothing).build().unwrap();
    assert_ne!(build().name(), build().name());
}

#[tokio::test]
async fn a_worker_without_work_stops_at_once() {
    let worker = empty().queue("a").handler("b", nothing).build().unwrap();
    let stats = worker.run(async {}).await;
    assert_eq!(stats.claimed, 0);
}

#[tokio::test]
async fn a_fault_inside_a_worker_is_not_kept_quiet() {
    let worker = Worker::of(Arc::new(Nothing { broken: true }));
    let worker = worker.queue("a").handler("b", nothing).build().unwrap();
    let running = tokio::spawn(worker.run(std::future::pending()));
    let panic = running.await.unwrap_err().into_panic();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"this source is broken"));
}
