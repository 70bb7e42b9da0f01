//! Thousands of jobs with four workers, some of which fail, panic, hang or snooze: each job ends once, as planned.

use crate::exclusive;
use crate::job_database::JobDatabase;
use leasehold_core::retry::Backoff;
use leasehold_core::{JobStatus, JsonText};
use leasehold_runtime::StoreSource;
use leasehold_store::job::{Dedup, Job, JobFilter, NewJob};
use leasehold_store::{Page, SchemaStore, Store};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use leasehold_testkit::{eventually, sized, temp_dir};
use leasehold_worker::{JobContext, JobError, Outcome, Stats, Worker};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

const WORKERS: usize = 4;
const QUEUE: &str = "many";
const MAX_ATTEMPTS: u32 = 3;
const SOON: Duration = Duration::from_millis(20);
/// The panic message of handlers.
const PANIC: &str = "as planned";

fn jobs() -> u32 {
    sized(5_000, 200_000)
}

/// What a job does, by its number. Of a hundred jobs five fail, and one each panics, hangs and snoozes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JobPlan {
    Completes,
    /// Fails this many times.
    Fails(u32),
    FailsPermanently,
    /// Panics this many times.
    Panics(u32),
    /// Hangs this many times.
    Hangs(u32),
    SnoozesOnce,
}

impl JobPlan {
    fn of(number: u32) -> Self {
        let century = number / 100;
        // Once, twice, or until the job fails.
        let times = 1 + century % MAX_ATTEMPTS;
        match number % 100 {
            3 | 23 | 43 | 63 => Self::Fails(times),
            83 if century.is_multiple_of(2) => Self::FailsPermanently,
            83 => Self::Fails(times),
            17 => Self::Panics(times),
            37 => Self::Hangs(times),
            57 => Self::SnoozesOnce,
            _ => Self::Completes,
        }
    }

    /// Returns the final status and the number of attempts.
    fn end(self) -> (JobStatus, u32) {
        match self {
            Self::Completes | Self::SnoozesOnce => (JobStatus::Completed, 1),
            Self::FailsPermanently => (JobStatus::Failed, 1),
            Self::Fails(times) | Self::Panics(times) | Self::Hangs(times) => {
                if times < MAX_ATTEMPTS {
                    (JobStatus::Completed, times + 1)
                } else {
                    (JobStatus::Failed, MAX_ATTEMPTS)
                }
            }
        }
    }

    /// Returns how often the handler runs.
    fn runs(self) -> u8 {
        let attempts = self.end().1 + u32::from(self == Self::SnoozesOnce);
        attempts.try_into().unwrap()
    }

    async fn run(self, job: &JobContext) -> Result<Outcome, JobError> {
        match self {
            Self::Fails(times) if job.attempt() <= times => Err(JobError::new("no")),
            Self::FailsPermanently => Err(JobError::permanent("never")),
            Self::Panics(times) if job.attempt() <= times => panic!("{PANIC}"),
            Self::Hangs(times) if job.attempt() <= times => std::future::pending().await,
            Self::SnoozesOnce if job.last_progress::<bool>()?.is_none() => {
                job.progress(&true).await?;
                Ok(Outcome::snooze(SOON))
            }
            _ => Outcome::done(&()),
        }
    }
}

fn new_job(number: u32) -> NewJob {
    let mut job = NewJob::new(QUEUE, "many", JsonText::of(&number).unwrap());
    job.max_attempts = Some(MAX_ATTEMPTS);
    job.backoff = Some(Backoff {
        base: SOON,
        factor: 1.0,
        ..Backoff::default()
    });
    if let JobPlan::Hangs(_) = JobPlan::of(number) {
        job.timeout = Some(SOON);
    }
    if number.is_multiple_of(10) || JobPlan::of(number) != JobPlan::Completes {
        job.dedup = Some(Dedup {
            key: format!("job {number}"),
            window: None,
        });
    }
    job
}

/// Enqueues all jobs, runs workers until all have ended, and checks each.
async fn run(store: Arc<dyn Store>) {
    quiet_panics();
    for first in (0..jobs()).step_by(5_000) {
        let jobs: Vec<NewJob> = (first..first + 5_000).map(new_job).collect();
        store.job_enqueue(&jobs).await.unwrap();
    }
    let runs: Arc<Vec<AtomicU8>> = Arc::new((0..jobs()).map(|_| AtomicU8::new(0)).collect());
    let workers: Vec<_> = (0..WORKERS)
        .map(|_| worker(store.clone(), runs.clone()).start())
        .collect();
    let ended = || {
        let ended = workers.iter().map(|worker| worker.stats());
        let ended: u64 = ended.map(|stats| stats.completed + stats.failed).sum();
        std::future::ready(ended >= u64::from(jobs()))
    };
    let all = eventually(Duration::from_secs(900), ended).await;
    let mut stats = Vec::new();
    for worker in workers {
        stats.push(worker.stop().await);
    }
    assert!(all, "{stats:#?}");
    assert_counted(&stats);
    for (number, runs) in (0..).zip(&*runs) {
        let (seen, plan) = (runs.load(Ordering::Relaxed), JobPlan::of(number));
        assert_eq!(seen, plan.runs(), "runs of {number}, {plan:?}");
    }
    let mut seen = vec![false; jobs() as usize];
    let mut page = Page::first(1_000);
    loop {
        let jobs = store.job_list(&JobFilter::default(), page).await.unwrap();
        let Some(last) = jobs.last() else { break };
        page = Page::after(last.id, 1_000);
        for job in &jobs {
            assert_ended(job, &mut seen);
        }
    }
    assert!(seen.into_iter().all(|seen| seen), "a job is missing");
}

fn worker(store: Arc<dyn Store>, runs: Arc<Vec<AtomicU8>>) -> Worker {
    let handler = move |number: u32, job: JobContext| {
        runs[number as usize].fetch_add(1, Ordering::Relaxed);
        async move { JobPlan::of(number).run(&job).await }
    };
    let worker = Worker::builder(Arc::new(StoreSource::new(store)))
        .queue(QUEUE)
        .concurrency(250);
    worker.handler("many", handler).build().unwrap()
}

/// Asserts that the workers' counters match the plans.
fn assert_counted(stats: &[Stats]) {
    let sum = |of: fn(&Stats) -> u64| stats.iter().map(of).sum::<u64>();
    let count = |of: fn(JobPlan) -> u32| {
        (0..jobs())
            .map(|number| u64::from(of(JobPlan::of(number))))
            .sum()
    };
    let failed = |plan: JobPlan| u32::from(plan.end().0 == JobStatus::Failed);
    let panicked = |plan| match plan {
        JobPlan::Panics(times) => times,
        _ => 0,
    };
    let timed_out = |plan| match plan {
        JobPlan::Hangs(times) => times,
        _ => 0,
    };
    let found = [
        sum(|stats| stats.failed),
        sum(|stats| stats.panicked),
        sum(|stats| stats.timed_out),
        sum(|stats| stats.snoozed),
        sum(|stats| stats.lost + stats.abandoned + stats.unwritten),
    ];
    let snoozed = |plan| u32::from(plan == JobPlan::SnoozesOnce);
    let expected = [
        count(failed),
        count(panicked),
        count(timed_out),
        count(snoozed),
        0,
    ];
    assert_eq!(found, expected, "{stats:#?}");
    assert_eq!(sum(|stats| stats.completed), u64::from(jobs()) - found[0]);
}

fn assert_ended(job: &Job, seen: &mut [bool]) {
    let number: u32 = job.payload.read().unwrap();
    let before = std::mem::replace(&mut seen[number as usize], true);
    assert!(!before, "{number} is listed twice");
    let end = (job.status.known().unwrap(), job.attempts);
    assert_eq!(end, JobPlan::of(number).end(), "{number}: {job:?}");
    assert!(job.finished_at.is_some() && job.claimed_by.is_none());
}

/// Hides the panics of handlers.
fn quiet_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.payload_as_str() != Some(PANIC) {
            usual(panic);
        }
    }));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_job_ends_once_as_expected_on_postgres() {
    let _exclusive = exclusive().await;
    let database = JobDatabase::without_history().await;
    run(database.store.clone()).await;
    assert_eq!(database.leftover_rows().await, [0; 4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_job_ends_once_as_expected_on_sqlite() {
    let _exclusive = exclusive().await;
    let directory = temp_dir();
    let file = directory.path().join("leasehold.db");
    let store = SqliteStore::open(&file, &SqliteOptions::default()).unwrap();
    store.schema_migrate().await.unwrap();
    run(Arc::new(store)).await;
    let connection = rusqlite::Connection::open(&file).unwrap();
    let left = connection.query_row(include_str!("sql/left_sqlite.sql"), [], |row| {
        let counts: rusqlite::Result<Vec<i64>> = (0..7).map(|column| row.get(column)).collect();
        counts
    });
    let all = i64::from(jobs());
    assert_eq!(left.unwrap(), [0, 0, 0, 0, all, all, 0]);
}
