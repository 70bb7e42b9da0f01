//! A PostgreSQL database that records every lease change, a store on it, and the queries of the tests.

use crate::WAIT_TIMEOUT;
use crate::history::{Claim, History};
use crate::protocol::{Behaviour, ProcessConfig, StoreLocation};
use leasehold_core::{JobId, JobStatus, JsonText, Timestamp};
use leasehold_store::Store;
use leasehold_store::job::{Job, NewJob};
use leasehold_testbed::postgres;
use leasehold_testkit::{TestDatabase, eventually};
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::{Client, NoTls};

pub(crate) const QUEUE: &str = "emails";

/// A database shared by the test and its worker processes.
pub(crate) struct JobDatabase {
    pub(crate) store: Arc<dyn Store>,
    client: Client,
    database: TestDatabase,
}

impl JobDatabase {
    pub(crate) async fn new() -> Self {
        let database = Self::without_history().await;
        let setup = database
            .client
            .batch_execute(include_str!("sql/history_setup.sql"));
        setup.await.unwrap();
        database
    }

    /// Creates a database for timing tests: commits do not wait for the disk, which other tests may keep busy for seconds.
    /// No test crashes the server, so no commit is lost.
    pub(crate) async fn async_commit() -> Self {
        let database = Self::new().await;
        let setup = database
            .client
            .batch_execute(include_str!("sql/async_commit.sql"));
        setup.await.unwrap();
        database
    }

    /// Creates a database that does not record changes.
    pub(crate) async fn without_history() -> Self {
        let database = postgres::database().await;
        let (client, connection) = tokio_postgres::connect(&database.url_in("leasehold"), NoTls)
            .await
            .unwrap();
        tokio::spawn(connection);
        Self {
            store: postgres::store(database.url()),
            client,
            database,
        }
    }

    pub(crate) fn location(&self) -> StoreLocation {
        StoreLocation::Postgres {
            url: self.database.url().to_owned(),
        }
    }

    /// Returns the configuration of a process with one worker of the queue.
    pub(crate) fn config(
        &self,
        name: &str,
        lease: Duration,
        behaviour: Behaviour,
    ) -> ProcessConfig {
        config(self.location(), name, lease, behaviour)
    }

    /// Returns the database's time.
    pub(crate) async fn now(&self) -> Timestamp {
        let row = self.client.query_one(include_str!("sql/now.sql"), &[]);
        row.await.unwrap().get(0)
    }

    /// Returns every change so far.
    pub(crate) async fn history(&self) -> History {
        let rows = self.client.query(include_str!("sql/history.sql"), &[]);
        History::of(&rows.await.unwrap())
    }

    /// Returns every claim of a job so far, oldest first.
    pub(crate) async fn claims_of(&self, job: JobId) -> Vec<Claim> {
        self.history().await.claims_of(job)
    }

    /// Returns the rows of all job tables.
    pub(crate) async fn dump(&self) -> Vec<String> {
        let rows = self.client.query(include_str!("sql/dump.sql"), &[]);
        let rows = rows.await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// Returns the row counts of job_waiting, job_lease, job_note and job_key.
    pub(crate) async fn leftover_rows(&self) -> [i64; 4] {
        let row = self
            .client
            .query_one(include_str!("sql/left_postgres.sql"), &[]);
        let row = row.await.unwrap();
        [0, 1, 2, 3].map(|column| row.get(column))
    }

    pub(crate) async fn job(&self, id: JobId) -> Job {
        self.store.job_get(id).await.unwrap().unwrap()
    }

    /// Returns the number of completed jobs of these queues.
    pub(crate) async fn completed(&self, queues: &[&str]) -> u64 {
        let mut completed = 0;
        for queue in queues {
            completed += self.store.queue_counts(queue).await.unwrap().completed;
        }
        completed
    }

    /// Waits until `count` jobs of these queues are completed.
    pub(crate) async fn until_completed(&self, queues: &[&str], count: usize) {
        let check = async || self.completed(queues).await >= count as u64;
        if !eventually(WAIT_TIMEOUT, check).await {
            let completed = self.completed(queues).await;
            panic!("{completed} of {count} jobs are completed");
        }
    }

    /// Asserts that this claim completed the job.
    pub(crate) async fn assert_completed_by(&self, job: JobId, claim: &Claim, attempts: u32) {
        let job = self.job(job).await;
        assert_eq!(job.status, JobStatus::Completed, "{job:?}");
        assert_eq!(job.token, claim.token, "{job:?}");
        assert_eq!(job.attempts, attempts, "{job:?}");
    }
}

pub(crate) fn config(
    location: StoreLocation,
    name: &str,
    lease: Duration,
    behaviour: Behaviour,
) -> ProcessConfig {
    ProcessConfig {
        location,
        queues: vec![QUEUE.to_owned()],
        name: name.to_owned(),
        workers: 1,
        concurrency: 100,
        lease,
        sweep: Duration::from_secs(1),
        behaviour,
        quiet: false,
    }
}

/// Enqueues `count` jobs in one call.
pub(crate) async fn enqueue(store: &dyn Store, queue: &str, count: usize) -> Vec<JobId> {
    let jobs = vec![NewJob::new(queue, "work", JsonText::default()); count];
    let jobs = store.job_enqueue(&jobs).await.unwrap();
    jobs.into_iter().map(|job| job.id).collect()
}
