//! The test environment: a store on a real database with a fault-injecting source in front of it, and helpers to enqueue, read and wait.

use crate::faulty_source::FaultySource;
use crate::{NEVER, WAIT_TIMEOUT, logs};
use leasehold_core::{JobId, JobStatus, JsonText, Timestamp};
use leasehold_runtime::StoreSource;
use leasehold_store::job::{Job, NewJob};
use leasehold_store::queue::QueueChange;
use leasehold_store::{ManualClock, Store};
use leasehold_testbed::{BackendKind, BackendOptions, TestBackend};
use leasehold_testkit::eventually;
use leasehold_worker::{Worker, WorkerBuilder};
use serde_json::Value;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) const QUEUE: &str = "emails";

/// A store, and the fault-injecting source between it and its workers.
pub(crate) struct WorkerEnv {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) source: Arc<FaultySource>,
    backend: TestBackend,
}

impl WorkerEnv {
    /// Uses the database's clock.
    pub(crate) async fn new(on: BackendKind) -> Self {
        Self::with(on, None).await
    }

    /// Uses a manual clock that starts at the current time.
    pub(crate) async fn still(on: BackendKind) -> Self {
        Self::starting_at(on, Timestamp::now()).await
    }

    /// Uses a manual clock that starts at `start`.
    pub(crate) async fn starting_at(on: BackendKind, start: Timestamp) -> Self {
        Self::with(on, Some(ManualClock::starting_at(start))).await
    }

    async fn with(on: BackendKind, clock: Option<ManualClock>) -> Self {
        logs::capture();
        let options = BackendOptions {
            clock,
            readers: 1,
            ..BackendOptions::default()
        };
        let backend = TestBackend::with(on, options).await;
        let store = backend.store.clone();
        Self {
            source: Arc::new(FaultySource::before(Arc::new(StoreSource::new(
                store.clone(),
            )))),
            store,
            backend,
        }
    }

    /// Advances the store's manual clock.
    pub(crate) fn advance(&self, by: Duration) {
        self.backend.advance(by);
    }

    /// Returns a worker that never polls without a notification.
    pub(crate) fn worker(&self) -> WorkerBuilder {
        Worker::builder(self.source.clone())
            .queue(QUEUE)
            .poll_interval(NEVER)
    }

    /// Enqueues one job.
    pub(crate) async fn enqueue(&self, kind: &str, payload: Value) -> JobId {
        self.enqueue_with(kind, payload, |_| {}).await
    }

    /// Enqueues one job after `change` modified it.
    pub(crate) async fn enqueue_with(
        &self,
        kind: &str,
        payload: Value,
        change: impl FnOnce(&mut NewJob),
    ) -> JobId {
        let mut new = NewJob::new(QUEUE, kind, JsonText::from(&payload));
        change(&mut new);
        self.store.job_enqueue(&[new]).await.unwrap()[0].id
    }

    /// Enqueues `count` jobs, numbered from 0.
    pub(crate) async fn enqueue_many(&self, queue: &str, kind: &str, count: usize) -> Vec<JobId> {
        let new = |number| NewJob::new(queue, kind, JsonText::of(&number).unwrap());
        let jobs: Vec<NewJob> = (0..count).map(new).collect();
        let jobs = self.store.job_enqueue(&jobs).await.unwrap();
        jobs.into_iter().map(|job| job.id).collect()
    }

    pub(crate) async fn change_queue(&self, change: QueueChange) {
        self.store
            .queue_update(QUEUE, &change, &leasehold_store::Actor::Local)
            .await
            .unwrap();
    }

    pub(crate) async fn job(&self, id: JobId) -> Job {
        self.store.job_get(id).await.unwrap().unwrap()
    }

    pub(crate) async fn status(&self, id: JobId) -> JobStatus {
        self.job(id).await.status.known().unwrap()
    }

    /// Waits until the job has this status, and returns it.
    pub(crate) async fn until(&self, id: JobId, status: JobStatus) -> Job {
        let what = format!("job {id} is {status}");
        let seen = Mutex::new(None);
        until(&what, async || {
            let job = self.job(id).await;
            let is_there = job.status == status;
            *seen.lock().unwrap() = Some(job);
            is_there
        })
        .await;
        // Returns this read: a second one may find the job claimed again.
        seen.into_inner().unwrap().unwrap()
    }

    /// Waits until all these jobs have this status.
    pub(crate) async fn until_all(&self, ids: &[JobId], status: JobStatus) {
        for id in ids {
            self.until(*id, status).await;
        }
    }
}

/// Waits until `check` returns true.
pub(crate) async fn until(what: &str, check: impl AsyncFn() -> bool) {
    let seen = eventually(WAIT_TIMEOUT, || check()).await;
    assert!(
        seen,
        "timed out waiting until {what}; log:\n{}",
        logs::all()
    );
}
