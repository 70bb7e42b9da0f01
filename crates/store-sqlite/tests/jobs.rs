//! Jobs in SQLite: storage in runs and pages, the work_queue view, crash recovery, manual changes.
#![allow(clippy::unwrap_used)]

use leasehold_core::job::{ClaimedJob, JobClaim, JobEnd, JobFinish, JobFinished, RetryMode};
use leasehold_core::{JobId, JobStatus, JsonText};
use leasehold_store::SchemaStore;
use leasehold_store::job::JobStore;
use leasehold_store::job::{JobCancelled, JobStart, NewJob};
use leasehold_store::queue::QueueChange;
use leasehold_store::queue::QueueStore;
use leasehold_store::{Clock, ManualClock};
use leasehold_store_conformance::clock;
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use leasehold_testkit::TempDir;
use rusqlite::Connection;
use std::fs;
use std::path::Path;
use std::time::Duration;

const LINE_COUNT: &str = include_str!("sql/job_line_count.sql");
const LEASE_SIZES: &str = include_str!("sql/job_lease_sizes.sql");
const DELETE: &str = include_str!("sql/job_delete.sql");
const WORK_QUEUE_GET: &str = include_str!("sql/work_queue_get.sql");
const STATE_CONFLICTS: &str = include_str!("sql/job_state_conflicts.sql");

const WORKER: &str = "worker-1";
const LEASE: Duration = Duration::from_secs(30);

/// A store and a second connection to its file, like the `sqlite3` shell.
struct TestEnv {
    dir: TempDir,
    clock: ManualClock,
    store: SqliteStore,
    client: Connection,
}

fn open(file: &Path, clock: &ManualClock) -> SqliteStore {
    let options = SqliteOptions {
        clock: Clock::Manual(clock.clone()),
        ..SqliteOptions::default()
    };
    SqliteStore::open(file, &options).unwrap()
}

fn job(priority: i16) -> NewJob {
    NewJob {
        priority,
        ..NewJob::new("mail", "send", JsonText::parse(r#"{"to": 7}"#).unwrap())
    }
}

impl TestEnv {
    async fn new() -> Self {
        let (dir, clock) = (leasehold_testkit::temp_dir(), clock());
        let file = dir.path().join("leasehold.db");
        let store = open(&file, &clock);
        store.schema_migrate().await.unwrap();
        let client = Connection::open(file).unwrap();
        Self {
            dir,
            clock,
            store,
            client,
        }
    }

    async fn enqueue(&self, jobs: &[NewJob]) -> Vec<JobId> {
        let answers = self.store.job_enqueue(jobs).await.unwrap();
        answers.into_iter().map(|answer| answer.id).collect()
    }

    async fn claim(&self, max: u32) -> Vec<ClaimedJob> {
        claim(&self.store, max).await
    }

    async fn finish(&self, job: &ClaimedJob, end: JobEnd) -> JobFinished {
        finish(&self.store, job, end).await
    }

    fn count(&self, sql: &str) -> i64 {
        self.client.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    fn pages(&self) -> String {
        let sizes = self.client.query_row(LEASE_SIZES, [], |row| row.get(0));
        sizes.unwrap()
    }

    fn assert_one_state_each(&self) {
        assert_eq!(self.count(STATE_CONFLICTS), 0);
    }
}

async fn claim(store: &SqliteStore, max: u32) -> Vec<ClaimedJob> {
    let claim = JobClaim {
        queue: "mail".into(),
        worker: WORKER.into(),
        max,
        lease: Some(LEASE),
    };
    store.job_claim(&claim).await.unwrap().jobs
}

async fn finish(store: &SqliteStore, job: &ClaimedJob, end: JobEnd) -> JobFinished {
    let claim = job.claim();
    let finish = JobFinish { claim, end };
    store.job_finish(WORKER, &[finish]).await.unwrap().jobs[0]
}

fn ids(jobs: &[ClaimedJob]) -> Vec<JobId> {
    jobs.iter().map(|job| job.id).collect()
}

fn completed() -> JobEnd {
    JobEnd::Completed { result: None }
}

#[tokio::test]
async fn consecutive_jobs_form_one_run() {
    let env = TestEnv::new().await;
    env.enqueue(&vec![job(0); 100]).await;
    env.enqueue(&[job(0)]).await;
    env.enqueue(&vec![job(0); 10]).await;
    assert_eq!(env.count(LINE_COUNT), 1);
    env.enqueue(&[job(5), job(0), job(5)]).await;
    assert_eq!(env.count(LINE_COUNT), 4);
    env.assert_one_state_each();
    assert_eq!(env.claim(200).await.len(), 114);
    assert_eq!(env.count(LINE_COUNT), 0);
    env.assert_one_state_each();
}

#[tokio::test]
async fn cancelled_job_is_removed_from_the_start_middle_and_end_of_its_run() {
    let env = TestEnv::new().await;
    let all = env.enqueue(&vec![job(0); 9]).await;
    for index in [0, 4, 8, 5] {
        let cancelled = env.store.job_cancel(all[index]).await.unwrap();
        assert_eq!(cancelled, JobCancelled::Cancelled);
        env.assert_one_state_each();
    }
    assert_eq!(env.count(LINE_COUNT), 2);
    let left: Vec<JobId> = [1, 2, 3, 6, 7].map(|index| all[index]).to_vec();
    assert_eq!(ids(&env.claim(2).await), left[..2]);
    assert_eq!(ids(&env.claim(9).await), left[2..]);
}

#[tokio::test]
async fn large_claim_is_stored_in_pages_of_64_with_one_token_each() {
    let env = TestEnv::new().await;
    env.enqueue(&vec![job(0); 130]).await;
    let claimed = env.claim(130).await;
    assert_eq!(env.pages(), "[64,64,2]");
    let tokens = [0, 63, 64, 127, 128, 129].map(|index| claimed[index].token);
    assert_eq!(tokens, [1, 1, 2, 2, 3, 3]);
    for index in [0, 70, 128, 129] {
        let answer = env.finish(&claimed[index], completed()).await;
        assert_eq!(answer, JobFinished::Completed);
    }
    assert_eq!(env.pages(), "[63,63]");
    env.assert_one_state_each();
}

#[tokio::test]
async fn leases_lines_and_ids_survive_a_crash() {
    let env = TestEnv::new().await;
    let all = env.enqueue(&vec![job(0); 100]).await;
    let claimed = env.claim(70).await;
    env.finish(&claimed[0], completed()).await;
    let retry_mode = RetryMode::After(Duration::from_secs(5));
    let error = "it broke".to_owned();
    env.finish(&claimed[1], JobEnd::Failed { error, retry_mode })
        .await;

    // A killed process leaves the file and its WAL in their current state.
    let crashed = leasehold_testkit::temp_dir();
    for name in ["leasehold.db", "leasehold.db-wal"] {
        fs::copy(env.dir.path().join(name), crashed.path().join(name)).unwrap();
    }
    let store = open(&crashed.path().join("leasehold.db"), &env.clock);

    let claims: Vec<_> = claimed.iter().map(ClaimedJob::claim).collect();
    let renewed = store.job_renew(WORKER, &claims, LEASE).await.unwrap();
    assert_eq!(renewed.renewed, ids(&claimed[2..]));
    env.clock.advance(Duration::from_secs(6));
    let next = claim(&store, 100).await;
    assert_eq!(ids(&next), [&all[1..2], &all[70..]].concat());
    assert!(next.iter().all(|job| job.token > claimed[69].token));
    assert_eq!((next[0].attempt, next[1].attempt), (2, 1));
    let new = store.job_enqueue(&[job(0)]).await.unwrap();
    assert_eq!(new[0].id, JobId(all[99].0 + 1));
}

#[tokio::test]
async fn ids_and_tokens_are_not_reused_after_all_jobs_were_deleted() {
    let env = TestEnv::new().await;
    let change = QueueChange {
        keep_completed: Some(false),
        ..QueueChange::default()
    };
    env.store
        .queue_update("mail", &change, &leasehold_store::Actor::Local)
        .await
        .unwrap();
    let mut last = (JobId(0), 0);
    for _ in 0..3 {
        env.enqueue(&[job(0)]).await;
        let claimed = env.claim(1).await;
        assert!((claimed[0].id, claimed[0].token) > last);
        last = (claimed[0].id, claimed[0].token);
        env.finish(&claimed[0], completed()).await;
        assert_eq!(env.store.job_get(last.0).await.unwrap(), None);
    }
}

#[tokio::test]
async fn work_queue_view_matches_the_store() {
    let env = TestEnv::new().await;
    let mut all = env.enqueue(&vec![job(0); 6]).await;
    let claimed = env.claim(5).await;
    let result = Some(JsonText::parse("[1]").unwrap());
    env.finish(&claimed[0], JobEnd::Completed { result }).await;
    for (index, retry_mode) in [(1, RetryMode::Never), (2, RetryMode::Policy)] {
        let error = "it broke".to_owned();
        env.finish(&claimed[index], JobEnd::Failed { error, retry_mode })
            .await;
    }
    env.finish(&claimed[3], JobEnd::Returned).await;
    let start = JobStart::In(Duration::from_secs(60));
    all.extend(env.enqueue(&[NewJob { start, ..job(3) }]).await);
    for id in all {
        let job = env.store.job_get(id).await.unwrap().unwrap();
        let row_matches = env.client.query_row(WORK_QUEUE_GET, [id.0], |row| {
            assert_eq!(row.get::<_, String>(0)?, job.queue);
            assert_eq!(row.get::<_, String>(1)?, job.kind);
            assert_eq!(row.get::<_, String>(2)?, job.status.to_string());
            assert_eq!(row.get::<_, i16>(3)?, job.priority);
            assert_eq!(row.get::<_, String>(4)?, job.payload.as_str());
            assert_eq!(row.get::<_, i64>(5)?, job.run_at.as_microsecond());
            assert_eq!(row.get::<_, u32>(6)?, job.attempts);
            assert_eq!(row.get::<_, Option<String>>(7)?, job.claimed_by);
            let time = |at: Option<leasehold_core::Timestamp>| at.map(|at| at.as_microsecond());
            assert_eq!(row.get::<_, Option<i64>>(8)?, time(job.lease_expires_at));
            assert_eq!(row.get::<_, Option<i64>>(9)?, time(Some(job.created_at)));
            assert_eq!(row.get::<_, Option<i64>>(10)?, time(job.finished_at));
            assert_eq!(row.get::<_, Option<String>>(11)?, job.last_error);
            let result = row.get::<_, Option<String>>(12)?.map(JsonText::trusted);
            assert_eq!(result, job.result);
            Ok(())
        });
        row_matches.unwrap();
    }
}

#[tokio::test]
async fn manually_deleted_jobs_do_not_block_their_line() {
    let env = TestEnv::new().await;
    let all = env.enqueue(&vec![job(0); 10]).await;
    for index in [0, 1, 5, 9] {
        env.client.execute(DELETE, [all[index].0]).unwrap();
    }
    let mut claimed = Vec::new();
    while claimed.len() < 6 {
        claimed.extend(ids(&env.claim(2).await));
    }
    let left = [2, 3, 4, 6, 7, 8].map(|index| all[index]);
    assert_eq!(claimed, left);
}

#[tokio::test]
async fn retried_job_keeps_its_last_error_and_run_at() {
    let env = TestEnv::new().await;
    let id = env.enqueue(&[job(0)]).await[0];
    let first = env.claim(1).await;
    let error = "it broke".to_owned();
    let retry_mode = RetryMode::After(Duration::from_secs(9));
    env.finish(&first[0], JobEnd::Failed { error, retry_mode })
        .await;
    env.clock.advance(Duration::from_secs(20));
    let second = env.claim(1).await;
    let running = env.store.job_get(id).await.unwrap().unwrap();
    assert_eq!(running.status, JobStatus::Running);
    assert_eq!(running.last_error.as_deref(), Some("it broke"));
    assert_eq!(running.run_at, running.created_at + Duration::from_secs(9));
    env.finish(&second[0], completed()).await;
    let done = env.store.job_get(id).await.unwrap().unwrap();
    assert_eq!(done.run_at, running.run_at);
    assert_eq!(done.last_error, running.last_error);
}
