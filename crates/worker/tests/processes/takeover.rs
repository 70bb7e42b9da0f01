//! Takeover of the jobs of a killed or suspended process: others claim them in time, and a process that resumes cannot write.

use crate::child::Child;
use crate::history::Claim;
use crate::job_database::{JobDatabase, QUEUE, config, enqueue};
use crate::protocol::{Behaviour, ProcessEvent, StoreLocation, WorkTotals};
use crate::{WAIT_TIMEOUT, quiet_machine};
use leasehold_core::{JobId, JobStatus, Timestamp};
use leasehold_store::SchemaStore;
use leasehold_store::job::JobStore;
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use leasehold_testkit::{eventually, temp_dir};
use std::collections::HashMap;
use std::time::Duration;

const JOBS: usize = 50;
/// Outlasts the pauses of a process on a busy machine.
const LEASE: Duration = Duration::from_secs(8);
const SWEEP: Duration = Duration::from_secs(1);
/// Tolerance for a slow machine to wake the sweeper, run its statement, notify the claimer and run the claim.
const ALLOWANCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_a_killed_process_are_claimed_within_lease_and_sweep() {
    let _quiet = quiet_machine().await;
    killed(None).await;
}

/// Kills a process that holds leases; the successor's clock may be wrong.
pub(crate) async fn killed(successor_clock: Option<&str>) {
    let database = JobDatabase::async_commit().await;
    let jobs = enqueue(&*database.store, QUEUE, JOBS).await;
    let mut holder = Child::start(&database.config("holder", LEASE, Behaviour::Hold));
    holder.wait_for_started(JOBS);
    let successor = database.config("successor", LEASE, Behaviour::Finish);
    let successor = Child::start_with_clock(&successor, successor_clock);
    until_renewed(&database, jobs[0], 3).await;

    let killed_at = database.now().await;
    holder.process.kill();
    database.until_completed(&[QUEUE], JOBS).await;

    let history = database.history().await;
    for job in &jobs {
        let [first, second] = two(history.claims_of(*job));
        assert_eq!(
            (&*first.worker, &*second.worker),
            ("holder-0", "successor-0")
        );
        assert!(
            second.at >= history.lease_end(&first).0,
            "claimed before its lease expired"
        );
        let waited = Duration::try_from(second.at.duration_since(killed_at)).unwrap();
        assert!(
            waited <= LEASE + SWEEP + ALLOWANCE,
            "{job} after {waited:?}"
        );
        database.assert_completed_by(*job, &second, 2).await;
    }
    assert_eq!(database.leftover_rows().await, [0; 4]);
    let totals = successor.terminate();
    let expected = WorkTotals {
        claimed: JOBS as u64,
        completed: JOBS as u64,
        ..WorkTotals::default()
    };
    assert_eq!(totals, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn suspended_process_cannot_write_after_its_leases_expired() {
    let _quiet = quiet_machine().await;
    suspended(None).await;
}

/// Suspends a process that holds leases, and whose clock may be wrong, until another has run its jobs.
pub(crate) async fn suspended(clock: Option<&str>) {
    let database = JobDatabase::async_commit().await;
    let jobs = enqueue(&*database.store, QUEUE, JOBS).await;
    let late_writes = Behaviour::LateWrites {
        ends_after: LEASE.mul_f64(1.5),
    };
    let mut suspended =
        Child::start_with_clock(&database.config("suspended", LEASE, late_writes), clock);
    suspended.wait_for_started(JOBS);
    suspended.process.stop();
    let successor = Child::start(&database.config("successor", LEASE, Behaviour::Finish));
    database.until_completed(&[QUEUE], JOBS).await;

    let before = database.dump().await;
    suspended.process.cont();
    let is_late_write = |event: &ProcessEvent| matches!(event, ProcessEvent::LateWrite { .. });
    suspended.wait_for(JOBS, "late writes", is_late_write);
    let events = suspended.events();
    let totals = suspended.terminate();
    assert_eq!(database.dump().await, before);

    let expected = WorkTotals {
        claimed: JOBS as u64,
        lost: JOBS as u64,
        ..WorkTotals::default()
    };
    assert_eq!(totals, expected);
    assert_rejected(&events);
    for job in &jobs {
        let [first, second] = two(database.claims_of(*job).await);
        assert_eq!(
            (&*first.worker, &*second.worker),
            ("suspended-0", "successor-0")
        );
        database.assert_completed_by(*job, &second, 2).await;
    }
    assert_eq!(successor.terminate().completed, JOBS as u64);
}

/// Asserts that every handler was cancelled or returned once, and that the store rejected every late write.
fn assert_rejected(events: &[ProcessEvent]) {
    let mut ended: HashMap<JobId, usize> = HashMap::new();
    let mut dropped = 0;
    for event in events {
        match event {
            ProcessEvent::Returned { job, .. } => *ended.entry(*job).or_default() += 1,
            ProcessEvent::Dropped { job, cancelled, .. } => {
                *ended.entry(*job).or_default() += 1;
                dropped += 1;
                assert!(cancelled, "{event:?}");
            }
            ProcessEvent::LateWrite {
                renewed,
                ends,
                progress,
                ..
            } => {
                assert_eq!((*renewed, *progress), (0, false), "{event:?}");
                assert!(ends.iter().all(|end| end == "LeaseLost"), "{event:?}");
            }
            ProcessEvent::Ready { .. }
            | ProcessEvent::Started { .. }
            | ProcessEvent::Stopped { .. } => {}
        }
    }
    assert_eq!(ended.len(), JOBS);
    assert!(ended.values().all(|ends| *ends == 1), "{ended:?}");
    // At least the handlers that never return.
    assert!(dropped >= JOBS / 2, "{dropped}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_jobs_of_a_killed_process_run_after_restart() {
    let _quiet = quiet_machine().await;
    let directory = temp_dir();
    let file = directory.path().join("leasehold.db");
    let open = || SqliteStore::open(&file, &SqliteOptions::default()).unwrap();
    let store = open();
    store.schema_migrate().await.unwrap();
    let jobs = enqueue(&store, QUEUE, JOBS).await;
    drop(store);
    let location = || StoreLocation::Sqlite { file: file.clone() };

    let mut holder = Child::start(&config(location(), "holder", LEASE, Behaviour::Hold));
    holder.wait_for_started(JOBS);
    // SQLite uses this machine's clock.
    let killed_at = Timestamp::now();
    holder.process.kill();
    let successor = Child::start(&config(location(), "successor", LEASE, Behaviour::Finish));
    let has_returned = |event: &ProcessEvent| matches!(event, ProcessEvent::Returned { .. });
    successor.wait_for(JOBS, "handlers have returned", has_returned);
    assert_eq!(successor.terminate().completed, JOBS as u64);

    let store = open();
    for id in &jobs {
        let job = store.job_get(*id).await.unwrap().unwrap();
        assert_eq!((job.status, job.attempts), (JobStatus::Completed.into(), 2));
    }
    drop(store);
    let claims = last_claims(&file);
    assert_eq!(claims.len(), JOBS);
    for (job, at, worker) in claims {
        assert_eq!(worker, "successor-0");
        let waited = Duration::from_micros((at - killed_at.as_microsecond()).try_into().unwrap());
        assert!(
            waited <= LEASE + SWEEP + ALLOWANCE,
            "{job} after {waited:?}"
        );
    }
}

/// Returns the time and worker of each ended job's last claim.
fn last_claims(file: &std::path::Path) -> Vec<(i64, i64, String)> {
    let connection = rusqlite::Connection::open(file).unwrap();
    let mut statement = connection
        .prepare(include_str!("sql/last_claims_sqlite.sql"))
        .unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    rows.unwrap().map(Result::unwrap).collect()
}

/// Waits until the leases of a job's page have been renewed this often, and no other worker has claimed the job.
async fn until_renewed(database: &JobDatabase, job: JobId, times: usize) {
    let renewed = async || {
        let history = database.history().await;
        let claims = history.claims_of(job);
        assert_eq!(
            claims.len(),
            1,
            "claimed before its lease expired: {claims:?}"
        );
        history.lease_end(&claims[0]).1 >= times
    };
    let renewed = eventually(WAIT_TIMEOUT, renewed).await;
    assert!(renewed, "the lease of {job} was not renewed");
}

fn two(claims: Vec<Claim>) -> [Claim; 2] {
    let text = format!("{claims:?}");
    claims
        .try_into()
        .unwrap_or_else(|_| panic!("not two claims: {text}"))
}
