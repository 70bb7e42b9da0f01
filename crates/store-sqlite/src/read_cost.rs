//! Reads of one queue or workspace cost what it has, whatever others have.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use crate::error::Fault;
use crate::job::list;
use crate::session::Session;
use crate::{SqliteOptions, SqliteStore, queue};
use leasehold_core::job::{ClaimedJob, JobClaim, JobEnd, JobFinish, RetryMode};
use leasehold_core::{JobStatus, JsonText};
use leasehold_store::job::{JobFilter, JobStart, JobStore, NewJob};
use leasehold_store::{Page, SchemaStore};
use std::time::Duration;

/// Jobs of other queues; half of them have ended.
const OTHERS: usize = 20_000;

async fn store() -> SqliteStore {
    let store = SqliteStore::open_in_memory(&SqliteOptions::default()).unwrap();
    store.schema_migrate().await.unwrap();
    store
}

fn job(queue: &str, start: JobStart) -> NewJob {
    NewJob {
        start,
        ..NewJob::new(queue, "send", JsonText::default())
    }
}

async fn claim(store: &SqliteStore, queue: &str, max: usize) -> Vec<ClaimedJob> {
    let claim = JobClaim {
        queue: queue.to_owned(),
        worker: "worker-1".to_owned(),
        max: u32::try_from(max).unwrap(),
        lease: Some(Duration::from_secs(3_600)),
    };
    store.job_claim(&claim).await.unwrap().jobs
}

/// Adds jobs of two queues alternately, so that lines have many runs, and for each four: one completed, one failed, one running or retried, one queued.
async fn fill(store: &SqliteStore, queues: [&str; 2], jobs: usize) {
    let batch = jobs.min(1_000);
    for number in 0..jobs / batch {
        let start = match number % 2 {
            0 => JobStart::Now,
            _ => JobStart::In(Duration::from_secs(3_600)),
        };
        let later = (0..batch / 4).map(|at| job(queues[at % 2], start));
        let now = (0..batch - batch / 4).map(|at| job(queues[at % 2], JobStart::Now));
        let new: Vec<NewJob> = now.chain(later).collect();
        store.job_enqueue(&new).await.unwrap();
        for queue in queues {
            let claimed = claim(store, queue, batch * 3 / 8).await;
            let ends = claimed.iter().enumerate().map(|(at, job)| {
                let failed = |retry_mode| JobEnd::Failed {
                    error: "no paper".to_owned(),
                    retry_mode,
                };
                let end = match at % 4 {
                    0 => failed(RetryMode::Never),
                    1 => failed(RetryMode::After(Duration::from_secs(3_600))),
                    2 => return None,
                    _ => JobEnd::Completed { result: None },
                };
                let claim = job.claim();
                Some(JobFinish { claim, end })
            });
            let ends: Vec<JobFinish> = ends.flatten().collect();
            store.job_finish("worker-1", &ends).await.unwrap();
        }
    }
}

/// Returns the steps that a read takes.
async fn steps<T, F>(store: &SqliteStore, read: F) -> u64
where
    T: Send + 'static,
    F: Fn(&Session<'_>) -> Result<T, Fault> + Send + 'static,
{
    let cost = store.read("test", move |s| {
        read(s)?;
        Ok(s.cost().steps)
    });
    cost.await.unwrap()
}

/// Returns the steps of each list of a queue, and of its counts.
async fn reads_of(store: &SqliteStore, name: &'static str) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    for status in [None].into_iter().chain(JobStatus::ALL.map(Some)) {
        let filter = JobFilter {
            queue: Some(name.to_owned()),
            status,
        };
        let list = move |s: &Session<'_>| list::list(s, &filter, Page::first(20));
        found.push((format!("list {status:?}"), steps(store, list).await));
    }
    let counts = steps(store, move |s| queue::counts(s, name)).await;
    found.push(("counts".to_owned(), counts));
    found
}

#[tokio::test]
async fn lists_and_counts_of_a_small_queue_do_not_read_the_jobs_of_others() {
    let store = store().await;
    fill(&store, ["small", "other"], 100).await;
    let alone = reads_of(&store, "small").await;
    fill(&store, ["large", "huge"], OTHERS).await;
    let beside = reads_of(&store, "small").await;
    let large = reads_of(&store, "large").await;
    let mut too_many = Vec::new();
    for ((read, alone), ((_, beside), (_, large))) in
        alone.into_iter().zip(beside.into_iter().zip(large))
    {
        println!("{read}: {alone} steps alone, {beside} beside others, {large} of a large queue");
        // The lists of completed and of waiting jobs look among the newest 1,000 of all queues first.
        if beside > alone + alone / 10 + 15_000 {
            too_many.push(read);
        }
    }
    assert_eq!(too_many, [""; 0]);
}
