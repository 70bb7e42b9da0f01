//! Limits under concurrency: forty workers in four processes, with expiring leases, late renewals and changing limits. Checks every commit,
//! not samples.

use crate::child::Child;
use crate::job_database::{JobDatabase, QUEUE, enqueue};
use crate::protocol::{Behaviour, ProcessConfig, WorkTotals};
use crate::{exclusive, history::Summary};
use leasehold_core::job::JobRetry;
use leasehold_store::queue::QueueChange;
use std::time::Duration;

const PROCESSES: usize = 4;
const WORKERS_EACH: usize = 10;
const LEASE: Duration = Duration::from_millis(300);
const SWEEP: Duration = Duration::from_millis(100);
/// The limits in force one after the other. Each stays until a number of jobs in proportion to it is completed.
const LIMITS: [u32; 9] = [7, 3, 12, 7, 1, 9, 2, 15, 7];
const JOBS_EACH: usize = 12;

#[tokio::test(flavor = "multi_thread")]
async fn claims_never_exceed_the_queue_limit() {
    let _exclusive = exclusive().await;
    let database = JobDatabase::new().await;
    let queues = [QUEUE];
    limit(&database, QUEUE, LIMITS[0]).await;
    let (processes, jobs) = run_under_changing_limits(&database, &queues, async |next| {
        limit(&database, QUEUE, next).await;
    })
    .await;
    let summary = assert_all_completed(&database, processes, jobs).await;
    assert_limits_reached(&summary, &LIMITS);
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_never_exceed_the_global_job_limit() {
    let _exclusive = exclusive().await;
    let database = JobDatabase::new().await;
    let queues = ["emails", "reports"];
    // One queue also has its own limit, which is reached while the global limit is high.
    limit(&database, "emails", 5).await;
    let set = async |limit| {
        database
            .store
            .job_limit_set(Some(limit), &leasehold_store::Actor::Local)
            .await
            .unwrap()
    };
    set(LIMITS[0]).await;
    let (processes, jobs) = run_under_changing_limits(&database, &queues, set).await;
    let summary = assert_all_completed(&database, processes, jobs).await;
    assert_limits_reached(&summary, &[&LIMITS[..], &[5]].concat());
}

/// Runs the processes until all jobs are completed, and sets the next limit after each part. Returns the processes and the number of jobs.
async fn run_under_changing_limits(
    database: &JobDatabase,
    queues: &[&str],
    set: impl AsyncFn(u32),
) -> (Vec<Child>, usize) {
    for queue in queues {
        raise_max_attempts(database, queue).await;
    }
    let processes: Vec<Child> = (0..PROCESSES)
        .map(|number| Child::start(&config(database, queues, number)))
        .collect();
    // All processes run by now, so that each gets some of the jobs.
    let enqueue_each = async |count: usize| {
        for queue in queues {
            enqueue(&*database.store, queue, count).await;
        }
        count * queues.len()
    };
    let mut enqueued = enqueue_each(jobs() / queues.len()).await;
    let mut completed = 0;
    for limits in LIMITS.windows(2) {
        completed += jobs_under(limits[0]);
        database.until_completed(queues, completed).await;
        set(limits[1]).await;
        // On a busy machine more jobs may have ended before the limit changed: replaces them, so that jobs are left for every limit.
        let ahead = database.completed(queues).await as usize - completed;
        if ahead > 0 {
            enqueued += enqueue_each(ahead.div_ceil(queues.len())).await;
            completed += ahead;
        }
    }
    database.until_completed(queues, enqueued).await;
    (processes, enqueued)
}

/// Adds a few jobs for low limits, under which jobs of the limit before are still running.
fn jobs_under(limit: u32) -> usize {
    (limit as usize + 3) * JOBS_EACH
}

fn jobs() -> usize {
    LIMITS.into_iter().map(jobs_under).sum()
}

fn config(database: &JobDatabase, queues: &[&str], number: usize) -> ProcessConfig {
    ProcessConfig {
        queues: queues.iter().map(|queue| (*queue).to_owned()).collect(),
        workers: WORKERS_EACH,
        concurrency: 3,
        sweep: SWEEP,
        quiet: true,
        ..database.config(&format!("p{number}"), LEASE, Behaviour::Random)
    }
}

/// Asserts that every job completed, no rows are left, many leases were lost, and no commit exceeded a limit.
async fn assert_all_completed(
    database: &JobDatabase,
    processes: Vec<Child>,
    jobs: usize,
) -> Summary {
    let mut totals = WorkTotals::default();
    for process in processes {
        let more = process.terminate();
        totals.completed += more.completed;
        totals.lost += more.lost;
        assert_eq!(more.failed, 0);
        assert!(more.completed > 0, "a process completed no job: {more:?}");
    }
    assert_eq!(database.leftover_rows().await, [0; 4]);
    // A worker whose result arrived late may not know that it was written.
    assert!(totals.completed <= jobs as u64, "{totals:?}");
    assert!(totals.lost >= 30, "too few leases were lost: {totals:?}");
    let summary = database.history().await.check();
    assert!(summary.over_lowered_limit > 0, "{summary:?}");
    summary
}

/// Asserts that some commits filled each of these limits, and many filled any.
fn assert_limits_reached(summary: &Summary, limits: &[u32]) {
    for limit in limits {
        let full = summary.full.get(&(*limit as usize)).copied();
        assert!(full.unwrap_or(0) >= 5, "{limit} in {summary:?}");
    }
    let full: usize = summary.full.values().sum();
    assert!(full >= 300, "limits were reached too rarely: {summary:?}");
}

async fn limit(database: &JobDatabase, queue: &str, limit: u32) {
    let change = QueueChange {
        limit: Some(Some(limit)),
        ..QueueChange::default()
    };
    database
        .store
        .queue_update(queue, &change, &leasehold_store::Actor::Local)
        .await
        .unwrap();
}

/// Expired leases count as attempts; no job may fail because of them.
async fn raise_max_attempts(database: &JobDatabase, queue: &str) {
    let retry = JobRetry {
        max_attempts: 1_000,
        ..JobRetry::default()
    };
    let change = QueueChange {
        retry: Some(retry),
        ..QueueChange::default()
    };
    database
        .store
        .queue_update(queue, &change, &leasehold_store::Actor::Local)
        .await
        .unwrap();
}
