//! What every scenario stands on: a real store, a spy before it, and short words for what is done with them.

use crate::spy::Spy;
use crate::{NEVER, PATIENCE, logs};
use leasehold_core::{JobId, JobStatus, JsonText, Timestamp};
use leasehold_store::job::{Job, NewJob};
use leasehold_store::queue::QueueChange;
use leasehold_store::{Clock, ManualClock, Store};
use leasehold_store_postgres::{MIGRATIONS, PostgresOptions, PostgresStore};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use leasehold_testkit::{TempDir, TestDatabase, TestPostgres, eventually, temp_dir};
use leasehold_worker::{StoreSource, Worker, WorkerBuilder};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Which store a scenario runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    Postgres,
    Sqlite,
}

pub(crate) const QUEUE: &str = "emails";

pub(crate) struct Ground {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) spy: Arc<Spy>,
    clock: Option<ManualClock>,
    _database: Option<TestDatabase>,
    _folder: Option<TempDir>,
}

impl Ground {
    /// With the database's own clock.
    pub(crate) async fn new(on: On) -> Self {
        Self::with(on, None).await
    }

    /// With a clock that stands still until it is moved.
    pub(crate) async fn still(on: On) -> Self {
        Self::starting_at(on, Timestamp::now()).await
    }

    /// With a clock that shows this until it is moved.
    pub(crate) async fn starting_at(on: On, start: Timestamp) -> Self {
        Self::with(on, Some(ManualClock::starting_at(start))).await
    }

    async fn with(on: On, clock: Option<ManualClock>) -> Self {
        logs::keep();
        let judge = clock.clone().map_or(Clock::Database, Clock::Manual);
        let (store, database, folder): (Arc<dyn Store>, _, _) = match on {
            On::Postgres => {
                let database = database().await;
                let options = PostgresOptions {
                    clock: judge,
                    max_connections: 6,
                    ..PostgresOptions::new(database.url())
                };
                let store = PostgresStore::new(&options).unwrap();
                (Arc::new(store), Some(database), None)
            }
            On::Sqlite => {
                let folder = temp_dir();
                let options = SqliteOptions {
                    clock: judge,
                    readers: 1,
                    ..SqliteOptions::default()
                };
                let file = folder.path().join("leasehold.db");
                let store = SqliteStore::open(file, &options).unwrap();
                store.schema_migrate().await.unwrap();
                (Arc::new(store), None, Some(folder))
            }
        };
        Self {
            spy: Arc::new(Spy::before(Arc::new(StoreSource::new(store.clone())))),
            store,
            clock,
            _database: database,
            _folder: folder,
        }
    }

    /// Moves the store's clock.
    pub(crate) fn advance(&self, by: Duration) {
        self.clock.as_ref().unwrap().advance(by);
    }

    /// A worker that never polls, seen by the spy.
    pub(crate) fn worker(&self) -> WorkerBuilder {
        Worker::of(self.spy.clone())
            .queue(QUEUE)
            .poll_interval(NEVER)
    }

    /// Enqueues one job.
    pub(crate) async fn enqueue(&self, kind: &str, payload: Value) -> JobId {
        self.enqueue_with(kind, payload, |_| {}).await
    }

    /// Enqueues one job that is changed first.
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

    /// Enqueues so many jobs, numbered from 0.
    pub(crate) async fn enqueue_many(&self, queue: &str, kind: &str, count: usize) -> Vec<JobId> {
        let new = |number| NewJob::new(queue, kind, JsonText::of(&number).unwrap());
        let jobs: Vec<NewJob> = (0..count).map(new).collect();
        let jobs = self.store.job_enqueue(&jobs).await.unwrap();
        jobs.into_iter().map(|job| job.id).collect()
    }

    pub(crate) async fn change_queue(&self, change: QueueChange) {
        self.store.queue_update(QUEUE, &change).await.unwrap();
    }

    pub(crate) async fn job(&self, id: JobId) -> Job {
        self.store.job_get(id).await.unwrap().unwrap()
    }

    pub(crate) async fn status(&self, id: JobId) -> JobStatus {
        self.job(id).await.status
    }

    /// Waits until the job is in that status, and returns it.
    pub(crate) async fn until(&self, id: JobId, status: JobStatus) -> Job {
        let what = format!("job {id} is {status}");
        until(&what, async || self.status(id).await == status).await;
        self.job(id).await
    }

    /// Waits until all these jobs are in that status.
    pub(crate) async fn until_all(&self, ids: &[JobId], status: JobStatus) {
        for id in ids {
            self.until(*id, status).await;
        }
    }
}

/// Waits until it is so.
pub(crate) async fn until(what: &str, check: impl AsyncFn() -> bool) {
    let seen = eventually(PATIENCE, || check()).await;
    assert!(
        seen,
        "in vain waited until {what}; logged:\n{}",
        logs::all()
    );
}

/// A database made from the migrated template.
pub(crate) async fn database() -> TestDatabase {
    let server = TestPostgres::shared();
    let hash = MIGRATIONS
        .iter()
        .fold(0i64, |hash, m| hash.rotate_left(7) ^ m.checksum());
    let name = format!("leasehold_{:016x}", hash.cast_unsigned());
    let template = server.template_database(&name, |url| async move {
        let store = PostgresStore::new(&PostgresOptions::new(url)).unwrap();
        store.schema_migrate().await.unwrap();
    });
    server.fresh_database(Some(&template.await)).await
}
