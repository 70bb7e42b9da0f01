//! A PostgreSQL database that records every change of a lease, a store on it, and what tests read from both.

use crate::PATIENCE;
use crate::history::{Claim, History};
use crate::orders::{Behaviour, Orders, Place};
use leasehold_core::{JobId, JobStatus, JsonText, Timestamp};
use leasehold_store::Store;
use leasehold_store::job::{Job, NewJob};
use leasehold_testbed::postgres;
use leasehold_testkit::{TestDatabase, eventually};
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::{Client, NoTls};

pub(crate) const QUEUE: &str = "emails";

/// A database for jobs that worker processes work on.
pub(crate) struct JobDatabase {
    pub(crate) store: Arc<dyn Store>,
    client: Client,
    database: TestDatabase,
}

impl JobDatabase {
    pub(crate) async fn new() -> Self {
        let ground = Self::without_history().await;
        let setup = ground
            .client
            .batch_execute(include_str!("sql/history_setup.sql"));
        setup.await.unwrap();
        ground
    }

    /// The same, for tests that ask how long something took: commits do not wait for the disk, which others may keep busy for seconds.
    /// Nothing here ends the server, so nothing is lost by it.
    pub(crate) async fn prompt() -> Self {
        let ground = Self::new().await;
        let prompt = ground
            .client
            .batch_execute(include_str!("sql/commit_promptly.sql"));
        prompt.await.unwrap();
        ground
    }

    /// Without the notes.
    pub(crate) async fn without_history() -> Self {
        let database = postgres::database().await;
        let (client, connection) = tokio_postgres::connect(database.url(), NoTls)
            .await
            .unwrap();
        tokio::spawn(connection);
        Self {
            store: postgres::store(database.url()),
            client,
            database,
        }
    }

    pub(crate) fn place(&self) -> Place {
        Place::Postgres {
            url: self.database.url().to_owned(),
        }
    }

    /// Orders for a process of one worker of the queue.
    pub(crate) fn orders(&self, name: &str, lease: Duration, behaviour: Behaviour) -> Orders {
        orders(self.place(), name, lease, behaviour)
    }

    /// The database's time.
    pub(crate) async fn now(&self) -> Timestamp {
        let row = self.client.query_one(include_str!("sql/now.sql"), &[]);
        row.await.unwrap().get(0)
    }

    /// Every change so far, commit by commit.
    pub(crate) async fn history(&self) -> History {
        let rows = self.client.query(include_str!("sql/history.sql"), &[]);
        History::of(&rows.await.unwrap())
    }

    /// Every claim of a job so far, first to last.
    pub(crate) async fn claims_of(&self, job: JobId) -> Vec<Claim> {
        self.history().await.claims_of(job)
    }

    /// All that says where jobs are and how they ended.
    pub(crate) async fn everything(&self) -> Vec<String> {
        let rows = self.client.query(include_str!("sql/everything.sql"), &[]);
        let rows = rows.await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// How many rows are left in job_waiting, job_lease, job_note and job_key.
    pub(crate) async fn left(&self) -> [i64; 4] {
        let row = self
            .client
            .query_one(include_str!("sql/left_postgres.sql"), &[]);
        let row = row.await.unwrap();
        [0, 1, 2, 3].map(|column| row.get(column))
    }

    pub(crate) async fn job(&self, id: JobId) -> Job {
        self.store.job_get(id).await.unwrap().unwrap()
    }

    /// How many jobs of these queues are completed.
    pub(crate) async fn completed(&self, queues: &[&str]) -> u64 {
        let mut completed = 0;
        for queue in queues {
            completed += self.store.queue_counts(queue).await.unwrap().completed;
        }
        completed
    }

    /// Waits until so many jobs of these queues are completed.
    pub(crate) async fn until_completed(&self, queues: &[&str], count: usize) {
        let check = async || self.completed(queues).await >= count as u64;
        if !eventually(PATIENCE, check).await {
            let completed = self.completed(queues).await;
            panic!("{completed} of {count} jobs are completed");
        }
    }

    /// Asserts that the job was completed by this claim.
    pub(crate) async fn assert_completed_by(&self, job: JobId, claim: &Claim, attempts: u32) {
        let job = self.job(job).await;
        assert_eq!(job.status, JobStatus::Completed, "{job:?}");
        assert_eq!(job.token, claim.token, "{job:?}");
        assert_eq!(job.attempts, attempts, "{job:?}");
    }
}

pub(crate) fn orders(place: Place, name: &str, lease: Duration, behaviour: Behaviour) -> Orders {
    Orders {
        place,
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

/// Enqueues so many jobs in one call.
pub(crate) async fn enqueue(store: &dyn Store, queue: &str, count: usize) -> Vec<JobId> {
    let jobs = vec![NewJob::new(queue, "work", JsonText::default()); count];
    let jobs = store.job_enqueue(&jobs).await.unwrap();
    jobs.into_iter().map(|job| job.id).collect()
}
