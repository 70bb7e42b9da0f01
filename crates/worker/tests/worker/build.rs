//! The checks of the worker's builder, and workers without jobs.

use async_trait::async_trait;
use leasehold_core::JsonText;
use leasehold_core::job::{JobClaim, JobFinish, JobFinished, JobRef, JobsClaimed, JobsRenewed};
use leasehold_worker::{
    BuildError, JobContext, JobError, JobSource, SourceResult, Worker, WorkerBuilder,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// A source without jobs; a broken one panics when a worker claims.
#[derive(Default)]
struct EmptySource {
    broken: bool,
}

#[async_trait]
impl JobSource for EmptySource {
    async fn claim(&self, _: &JobClaim) -> SourceResult<JobsClaimed> {
        assert!(!self.broken, "this source is broken");
        Ok(JobsClaimed::default())
    }

    async fn renew(&self, _: &str, _: &[JobRef], _: Duration) -> SourceResult<JobsRenewed> {
        Ok(JobsRenewed::default())
    }

    async fn finish(&self, _: &str, _: &[JobFinish]) -> SourceResult<Vec<JobFinished>> {
        Ok(Vec::new())
    }

    async fn progress(&self, _: &str, _: JobRef, _: &JsonText) -> SourceResult<bool> {
        Ok(false)
    }

    async fn arm_notification(&self) -> SourceResult<bool> {
        Ok(false)
    }

    fn subscribe(&self) -> watch::Receiver<u64> {
        watch::channel(0).1
    }
}

fn empty() -> WorkerBuilder {
    Worker::builder(Arc::new(EmptySource::default()))
}

async fn nothing(_: (), _: JobContext) -> Result<(), JobError> {
    Ok(())
}

#[test]
fn build_rejects_invalid_options_by_name() {
    let valid = || empty().queue("a").handler("b", nothing);
    let cases = [
        (
            empty().handler("b", nothing),
            "failed to build the worker: no queue; add one with `queue`",
        ),
        (
            empty().queue("a"),
            "failed to build the worker: no handler; add one with `handler` or `default_handler`",
        ),
        (
            valid().handler("b", nothing),
            "failed to build the worker: kind `b` has two handlers",
        ),
        (
            valid().queue("a"),
            "failed to build the worker: queue `a` was given twice",
        ),
        (
            valid().queue(" "),
            "failed to build the worker: queue name ` ` must not be empty",
        ),
        (
            valid().name("a\0b"),
            "failed to build the worker: worker name `a\0b` must not contain control characters (found U+0000)",
        ),
        (
            valid().concurrency(0),
            "failed to build the worker: concurrency is 0, must be from 1 to 10000",
        ),
        (
            valid().prefetch(10_001),
            "failed to build the worker: prefetch is 10001, must be from 0 to 10000",
        ),
    ];
    for (builder, expected) in cases {
        let error: BuildError = builder.build().err().unwrap();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn default_worker_names_are_unique() {
    let build = || empty().queue("a").handler("b", nothing).build().unwrap();
    assert_ne!(build().name(), build().name());
}

#[tokio::test]
async fn idle_worker_stops_at_once() {
    let worker = empty().queue("a").handler("b", nothing).build().unwrap();
    let stats = worker.run(async {}).await;
    assert_eq!(stats.claimed, 0);
}

#[tokio::test]
async fn panic_inside_the_worker_is_propagated() {
    let worker = Worker::builder(Arc::new(EmptySource { broken: true }));
    let worker = worker.queue("a").handler("b", nothing).build().unwrap();
    let running = tokio::spawn(worker.run(std::future::pending()));
    let panic = running.await.unwrap_err().into_panic();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"this source is broken"));
}
