//! What becomes of the jobs of a process that is killed or stands still: others take over in time, and the process that comes back can change nothing.

use crate::child::Child;
use crate::history::Claim;
use crate::job_database::{JobDatabase, QUEUE, enqueue, orders};
use crate::orders::{Behaviour, Done, Place, Said};
use crate::{PATIENCE, calm};
use leasehold_core::{JobId, JobStatus, Timestamp};
use leasehold_store::SchemaStore;
use leasehold_store::job::JobStore;
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use leasehold_testkit::{eventually, temp_dir};
use std::collections::HashMap;
use std::time::Duration;

const JOBS: usize = 50;
const LEASE: Duration = Duration::from_secs(3);
const SWEEP: Duration = Duration::from_secs(1);
/// For a busy machine to wake the sweeper, run its statement, wake the claimer by it and run its: four steps that take milliseconds otherwise.
const ALLOWANCE: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread")]
async fn the_jobs_of_a_killed_process_are_claimed_again_within_lease_and_sweep() {
    let _calm = calm().await;
    killed(None).await;
}

/// Kills a process that holds leases, beside one whose clock may be wrong.
pub(crate) async fn killed(clock_of_heir: Option<&str>) {
    let ground = JobDatabase::prompt().await;
    let jobs = enqueue(&*ground.store, QUEUE, JOBS).await;
    let mut holder = Child::start(&ground.orders("holder", LEASE, Behaviour::Hold));
    holder.wait_for_started(JOBS);
    let heirs = ground.orders("heir", LEASE, Behaviour::Finish);
    let heir = Child::start_with_clock(&heirs, clock_of_heir);
    until_renewed(&ground, jobs[0], 3).await;

    let killed_at = ground.now().await;
    holder.process.kill();
    ground.until_completed(&[QUEUE], JOBS).await;

    let history = ground.history().await;
    for job in &jobs {
        let [first, second] = two(history.claims_of(*job));
        assert_eq!((&*first.worker, &*second.worker), ("holder-0", "heir-0"));
        assert!(
            second.at >= history.lease_end(&first).0,
            "taken from its owner"
        );
        let waited = Duration::try_from(second.at.duration_since(killed_at)).unwrap();
        assert!(
            waited <= LEASE + SWEEP + ALLOWANCE,
            "{job} after {waited:?}"
        );
        ground.assert_completed_by(*job, &second, 2).await;
    }
    assert_eq!(ground.left().await, [0; 4]);
    let done = heir.end();
    let expected = Done {
        claimed: JOBS as u64,
        completed: JOBS as u64,
        ..Done::default()
    };
    assert_eq!(done, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_stood_still_beyond_its_leases_can_change_nothing() {
    let _calm = calm().await;
    stood_still(None).await;
}

/// Stops a process that holds leases, whose clock may be wrong, until another has done its jobs.
pub(crate) async fn stood_still(clock: Option<&str>) {
    let ground = JobDatabase::prompt().await;
    let jobs = enqueue(&*ground.store, QUEUE, JOBS).await;
    let defy = Behaviour::Defy {
        ends_after: LEASE.mul_f64(1.5),
    };
    let mut sleeper = Child::start_with_clock(&ground.orders("sleeper", LEASE, defy), clock);
    sleeper.wait_for_started(JOBS);
    sleeper.process.stop();
    let heir = Child::start(&ground.orders("heir", LEASE, Behaviour::Finish));
    ground.until_completed(&[QUEUE], JOBS).await;

    let before = ground.everything().await;
    sleeper.process.cont();
    let over = |said: &Said| matches!(said, Said::Defied { .. });
    sleeper.wait_for(JOBS, "claims are defied", over);
    let said = sleeper.said();
    let done = sleeper.end();
    assert_eq!(ground.everything().await, before);

    let expected = Done {
        claimed: JOBS as u64,
        lost: JOBS as u64,
        ..Done::default()
    };
    assert_eq!(done, expected);
    assert_refused(&said);
    for job in &jobs {
        let [first, second] = two(ground.claims_of(*job).await);
        assert_eq!((&*first.worker, &*second.worker), ("sleeper-0", "heir-0"));
        ground.assert_completed_by(*job, &second, 2).await;
    }
    assert_eq!(heir.end().completed, JOBS as u64);
}

/// Every handler was stopped, or had answered in vain; and with none of the claims anything could be done.
fn assert_refused(said: &[Said]) {
    let mut ended: HashMap<JobId, usize> = HashMap::new();
    let mut dropped = 0;
    for said in said {
        match said {
            Said::Answered { job, .. } => *ended.entry(*job).or_default() += 1,
            Said::Dropped { job, cancelled, .. } => {
                *ended.entry(*job).or_default() += 1;
                dropped += 1;
                assert!(cancelled, "{said:?}");
            }
            Said::Defied {
                renewed,
                ends,
                progress,
                ..
            } => {
                assert_eq!((*renewed, *progress), (0, false), "{said:?}");
                assert!(ends.iter().all(|end| end == "LeaseLost"), "{said:?}");
            }
            Said::Ready { .. } | Said::Started { .. } | Said::Stopped { .. } => {}
        }
    }
    assert_eq!(ended.len(), JOBS);
    assert!(ended.values().all(|ends| *ends == 1), "{ended:?}");
    // Those that never end by themselves, at least.
    assert!(dropped >= JOBS / 2, "{dropped}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_jobs_of_a_killed_process_run_after_its_restart_on_the_same_file() {
    let _calm = calm().await;
    let folder = temp_dir();
    let file = folder.path().join("leasehold.db");
    let open = || SqliteStore::open(&file, &SqliteOptions::default()).unwrap();
    let store = open();
    store.schema_migrate().await.unwrap();
    let jobs = enqueue(&store, QUEUE, JOBS).await;
    drop(store);
    let place = || Place::Sqlite { file: file.clone() };

    let mut holder = Child::start(&orders(place(), "holder", LEASE, Behaviour::Hold));
    holder.wait_for_started(JOBS);
    // The file's clock is this machine's.
    let killed_at = Timestamp::now();
    holder.process.kill();
    let heir = Child::start(&orders(place(), "heir", LEASE, Behaviour::Finish));
    let answered = |said: &Said| matches!(said, Said::Answered { .. });
    heir.wait_for(JOBS, "handlers have answered", answered);
    assert_eq!(heir.end().completed, JOBS as u64);

    let store = open();
    for id in &jobs {
        let job = store.job_get(*id).await.unwrap().unwrap();
        assert_eq!((job.status, job.attempts), (JobStatus::Completed, 2));
    }
    drop(store);
    let claims = last_claims(&file);
    assert_eq!(claims.len(), JOBS);
    for (job, at, worker) in claims {
        assert_eq!(worker, "heir-0");
        let waited = Duration::from_micros((at - killed_at.as_microsecond()).try_into().unwrap());
        assert!(
            waited <= LEASE + SWEEP + ALLOWANCE,
            "{job} after {waited:?}"
        );
    }
}

/// When and by whom each ended job was claimed last.
fn last_claims(file: &std::path::Path) -> Vec<(i64, i64, String)> {
    let connection = rusqlite::Connection::open(file).unwrap();
    let mut statement = connection
        .prepare(include_str!("sql/last_claims_sqlite.sql"))
        .unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    rows.unwrap().map(Result::unwrap).collect()
}

/// Waits until the leases of a job's page have been renewed so often: whoever waits for it could not take it meanwhile.
async fn until_renewed(ground: &JobDatabase, job: JobId, times: usize) {
    let renewed = async || {
        let history = ground.history().await;
        let claims = history.claims_of(job);
        assert_eq!(claims.len(), 1, "taken from its owner: {claims:?}");
        history.lease_end(&claims[0]).1 >= times
    };
    let renewed = eventually(PATIENCE, renewed).await;
    assert!(renewed, "the lease of {job} is not renewed");
}

fn two(claims: Vec<Claim>) -> [Claim; 2] {
    let said = format!("{claims:?}");
    claims
        .try_into()
        .unwrap_or_else(|_| panic!("not two claims: {said}"))
}
