//! What is SQLite's own about jobs: runs and pages as they are kept, the view for people, what survives a crash, what hands can break.
#![allow(clippy::unwrap_used)]

use leasehold_core::job::{Again, ClaimedJob, JobClaim, JobEnd, JobFinish, JobFinished};
use leasehold_core::{JobId, JobStatus, JsonText};
use leasehold_store::SchemaStore;
use leasehold_store::job::JobStore;
use leasehold_store::job::{JobCancelled, JobStart, NewJob};
use leasehold_store::queue::QueueChange;
use leasehold_store::queue::QueueStore;
use leasehold_store::{Clock, ErrorKind, ManualClock};
use leasehold_store_conformance::clock;
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use leasehold_testkit::TempDir;
use rusqlite::Connection;
use std::fs;
use std::path::Path;
use std::time::Duration;

const LINE_COUNT: &str = include_str!("sql/job_line_count.sql");
const LEASE_SIZES: &str = include_str!("sql/job_lease_sizes.sql");
const LEASE_BREAK: &str = include_str!("sql/job_lease_break.sql");
const DELETE: &str = include_str!("sql/job_delete.sql");
const WORK_QUEUE_GET: &str = include_str!("sql/work_queue_get.sql");
const PLACES: &str = include_str!("sql/job_places.sql");

const WORKER: &str = "worker-1";
const LEASE: Duration = Duration::from_secs(30);

/// A store and a second connection to its file, as a person with a shell would have.
struct Room {
    folder: TempDir,
    clock: ManualClock,
    store: SqliteStore,
    hand: Connection,
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

impl Room {
    async fn new() -> Self {
        let (folder, clock) = (leasehold_testkit::temp_dir(), clock());
        let file = folder.path().join("leasehold.db");
        let store = open(&file, &clock);
        store.schema_migrate().await.unwrap();
        let hand = Connection::open(file).unwrap();
        Self {
            folder,
            clock,
            store,
            hand,
        }
    }

    async fn put(&self, jobs: &[NewJob]) -> Vec<JobId> {
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
        self.hand.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    fn pages(&self) -> String {
        let sizes = self.hand.query_row(LEASE_SIZES, [], |row| row.get(0));
        sizes.unwrap()
    }

    fn assert_each_in_one_place(&self) {
        assert_eq!(self.count(PLACES), 0);
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
async fn jobs_that_follow_each_other_are_one_run_however_they_were_enqueued() {
    let room = Room::new().await;
    room.put(&vec![job(0); 100]).await;
    room.put(&[job(0)]).await;
    room.put(&vec![job(0); 10]).await;
    assert_eq!(room.count(LINE_COUNT), 1);
    room.put(&[job(5), job(0), job(5)]).await;
    assert_eq!(room.count(LINE_COUNT), 4);
    room.assert_each_in_one_place();
    assert_eq!(room.claim(200).await.len(), 114);
    assert_eq!(room.count(LINE_COUNT), 0);
    room.assert_each_in_one_place();
}

#[tokio::test]
async fn a_cancelled_job_leaves_its_run_at_its_beginning_middle_and_end() {
    let room = Room::new().await;
    let all = room.put(&vec![job(0); 9]).await;
    for place in [0, 4, 8, 5] {
        let cancelled = room.store.job_cancel(all[place]).await.unwrap();
        assert_eq!(cancelled, JobCancelled::Cancelled);
        room.assert_each_in_one_place();
    }
    assert_eq!(room.count(LINE_COUNT), 2);
    let left: Vec<JobId> = [1, 2, 3, 6, 7].map(|place| all[place]).to_vec();
    assert_eq!(ids(&room.claim(2).await), left[..2]);
    assert_eq!(ids(&room.claim(9).await), left[2..]);
}

#[tokio::test]
async fn a_claim_of_many_is_kept_in_pages_of_64_each_with_its_token() {
    let room = Room::new().await;
    room.put(&vec![job(0); 130]).await;
    let claimed = room.claim(130).await;
    assert_eq!(room.pages(), "[64,64,2]");
    let tokens = [0, 63, 64, 127, 128, 129].map(|place| claimed[place].token);
    assert_eq!(tokens, [1, 1, 2, 2, 3, 3]);
    for place in [0, 70, 128, 129] {
        let answer = room.finish(&claimed[place], completed()).await;
        assert_eq!(answer, JobFinished::Completed);
    }
    assert_eq!(room.pages(), "[63,63]");
    room.assert_each_in_one_place();
}

#[tokio::test]
async fn after_a_crash_leases_lines_and_numbers_are_as_they_were_answered() {
    let room = Room::new().await;
    let all = room.put(&vec![job(0); 100]).await;
    let claimed = room.claim(70).await;
    room.finish(&claimed[0], completed()).await;
    let again = Again::After(Duration::from_secs(5));
    let error = "it broke".to_owned();
    room.finish(&claimed[1], JobEnd::Failed { error, again })
        .await;

    // What a killed process leaves: the file and its log as they are now.
    let crashed = leasehold_testkit::temp_dir();
    for name in ["leasehold.db", "leasehold.db-wal"] {
        fs::copy(room.folder.path().join(name), crashed.path().join(name)).unwrap();
    }
    let store = open(&crashed.path().join("leasehold.db"), &room.clock);

    let claims: Vec<_> = claimed.iter().map(ClaimedJob::claim).collect();
    let renewed = store.job_renew(WORKER, &claims, LEASE).await.unwrap();
    assert_eq!(renewed, ids(&claimed[2..]));
    room.clock.advance(Duration::from_secs(6));
    let next = claim(&store, 100).await;
    assert_eq!(ids(&next), [&all[1..2], &all[70..]].concat());
    assert!(next.iter().all(|job| job.token > claimed[69].token));
    assert_eq!((next[0].attempt, next[1].attempt), (2, 1));
    let new = store.job_enqueue(&[job(0)]).await.unwrap();
    assert_eq!(new[0].id, JobId(all[99].0 + 1));
}

#[tokio::test]
async fn no_id_and_no_token_is_given_twice_though_all_jobs_are_gone() {
    let room = Room::new().await;
    let change = QueueChange {
        keep_completed: Some(false),
        ..QueueChange::default()
    };
    room.store.queue_update("mail", &change).await.unwrap();
    let mut last = (JobId(0), 0);
    for _ in 0..3 {
        room.put(&[job(0)]).await;
        let claimed = room.claim(1).await;
        assert!((claimed[0].id, claimed[0].token) > last);
        last = (claimed[0].id, claimed[0].token);
        room.finish(&claimed[0], completed()).await;
        assert_eq!(room.store.job_get(last.0).await.unwrap(), None);
    }
}

#[tokio::test]
async fn the_view_shows_people_what_the_store_answers() {
    let room = Room::new().await;
    let mut all = room.put(&vec![job(0); 6]).await;
    let claimed = room.claim(5).await;
    let result = Some(JsonText::parse("[1]").unwrap());
    room.finish(&claimed[0], JobEnd::Completed { result }).await;
    for (place, again) in [(1, Again::Never), (2, Again::Policy)] {
        let error = "it broke".to_owned();
        room.finish(&claimed[place], JobEnd::Failed { error, again })
            .await;
    }
    room.finish(&claimed[3], JobEnd::GivenBack).await;
    let start = JobStart::In(Duration::from_secs(60));
    all.extend(room.put(&[NewJob { start, ..job(3) }]).await);
    for id in all {
        let job = room.store.job_get(id).await.unwrap().unwrap();
        let seen = room.hand.query_row(WORK_QUEUE_GET, [id.0], |row| {
            assert_eq!(row.get::<_, String>(0)?, job.queue);
            assert_eq!(row.get::<_, String>(1)?, job.kind);
            assert_eq!(row.get::<_, String>(2)?, job.status.as_str());
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
        seen.unwrap();
    }
}

#[tokio::test]
async fn jobs_deleted_by_hand_do_not_hold_up_their_line() {
    let room = Room::new().await;
    let all = room.put(&vec![job(0); 10]).await;
    for place in [0, 1, 5, 9] {
        room.hand.execute(DELETE, [all[place].0]).unwrap();
    }
    let mut claimed = Vec::new();
    while claimed.len() < 6 {
        claimed.extend(ids(&room.claim(2).await));
    }
    let left = [2, 3, 4, 6, 7, 8].map(|place| all[place]);
    assert_eq!(claimed, left);
}

#[tokio::test]
async fn a_page_that_makes_no_sense_is_an_error_for_its_worker_and_nobody_else() {
    let room = Room::new().await;
    room.put(&vec![job(0); 4]).await;
    let (lone, pair) = (room.claim(1).await, room.claim(2).await);
    room.hand.execute(LEASE_BREAK, []).unwrap();
    let claims = [lone[0].claim()];
    let broken = room.store.job_renew(WORKER, &claims, LEASE).await;
    let ErrorKind::Broken(text) = broken.unwrap_err().kind else {
        panic!("it is not told apart");
    };
    assert!(text.contains("makes no sense"), "{text}");
    assert_eq!(
        room.finish(&pair[0], completed()).await,
        JobFinished::Completed
    );
    assert_eq!(room.claim(1).await.len(), 1);
}

#[tokio::test]
async fn what_became_of_a_job_before_stays_with_it_while_it_runs_again() {
    let room = Room::new().await;
    let id = room.put(&[job(0)]).await[0];
    let first = room.claim(1).await;
    let error = "it broke".to_owned();
    let again = Again::After(Duration::from_secs(9));
    room.finish(&first[0], JobEnd::Failed { error, again })
        .await;
    room.clock.advance(Duration::from_secs(20));
    let second = room.claim(1).await;
    let running = room.store.job_get(id).await.unwrap().unwrap();
    assert_eq!(running.status, JobStatus::Running);
    assert_eq!(running.last_error.as_deref(), Some("it broke"));
    assert_eq!(running.run_at, running.created_at + Duration::from_secs(9));
    room.finish(&second[0], completed()).await;
    let done = room.store.job_get(id).await.unwrap().unwrap();
    assert_eq!(done.run_at, running.run_at);
    assert_eq!(done.last_error, running.last_error);
}
