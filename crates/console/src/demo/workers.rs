//! The workers of the demo. They sleep instead of working and fail now and then. They use the HTTP API like any other worker.

use leasehold_client::{Client, HttpSource};
use leasehold_worker::{JobContext, JobError, Worker, WorkerHandle};
use serde_json::{Value, json};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Concurrent jobs per worker; more than the slots of all workspaces together.
const CONCURRENCY: usize = 48;
/// Short, so that Ctrl-C ends the demo quickly.
const DRAIN: Duration = Duration::from_secs(2);
/// Every n-th charge fails in its first attempt and succeeds in the second.
const CHARGE_FAILURE_EVERY: u64 = 12;
/// Every n-th import fails permanently and becomes a dead letter.
const IMPORT_FAILURE_EVERY: u64 = 6;

pub(super) struct DemoWorkers(Vec<WorkerHandle>);

impl DemoWorkers {
    pub(super) fn start(client: &Client) -> Result<Self, String> {
        let shop = shop(client).map_err(|error| error.to_string())?;
        let office = office(client).map_err(|error| error.to_string())?;
        Ok(Self(vec![shop.start(), office.start()]))
    }

    pub(super) async fn stop(self) {
        let stops = self.0.into_iter().map(WorkerHandle::stop);
        futures::future::join_all(stops).await;
    }
}

fn worker(client: &Client, queues: &[&str]) -> leasehold_worker::WorkerBuilder {
    let source = Arc::new(HttpSource::new(client.clone()));
    let worker = Worker::builder(source)
        .concurrency(CONCURRENCY)
        .drain_timeout(DRAIN);
    queues
        .iter()
        .fold(worker, |worker, queue| worker.queue(*queue))
}

/// The worker of the order queues.
fn shop(client: &Client) -> Result<Worker, leasehold_worker::BuildError> {
    let charges = Arc::new(AtomicU64::new(0));
    worker(client, &["payments", "warehouse"])
        .handler("charge", move |_: Value, job: JobContext| {
            let fails = job.attempt() == 1 && is_nth(&charges, CHARGE_FAILURE_EVERY);
            async move {
                simulate_work(150..=600).await;
                if fails {
                    return Err(JobError::new("the bank did not answer"));
                }
                Ok(json!({"receipt": job.id()}))
            }
        })
        .handler("reserve", |_: Value, _: JobContext| {
            succeed_after(50..=250, "reserved")
        })
        .handler("ship", |_: Value, _: JobContext| {
            succeed_after(100..=800, "shipped")
        })
        .build()
}

/// The worker of all other queues.
fn office(client: &Client) -> Result<Worker, leasehold_worker::BuildError> {
    let checks = Arc::new(AtomicU64::new(0));
    worker(client, &["reports", "imports", "postcards"])
        .handler("collect", |_: Value, _: JobContext| {
            succeed_after(100..=300, "collected")
        })
        .handler("count", |_: Value, _: JobContext| {
            succeed_after(200..=800, "counted")
        })
        .handler("bind", |_: Value, _: JobContext| {
            succeed_after(100..=300, "bound")
        })
        .handler("fetch", |_: Value, _: JobContext| {
            succeed_after(100..=500, "fetched")
        })
        .handler("check", move |_: Value, _: JobContext| {
            let fails = is_nth(&checks, IMPORT_FAILURE_EVERY);
            async move {
                simulate_work(100..=400).await;
                if fails {
                    return Err(JobError::permanent("the file ends in the middle of a row"));
                }
                Ok("checked")
            }
        })
        .handler("write", |_: Value, _: JobContext| {
            succeed_after(150..=500, "written")
        })
        .handler("post", |_: Value, _: JobContext| {
            succeed_after(100..=300, "posted")
        })
        .build()
}

async fn succeed_after(
    millis: RangeInclusive<u64>,
    what: &'static str,
) -> Result<&'static str, JobError> {
    simulate_work(millis).await;
    Ok(what)
}

/// Sleeps for a random time.
async fn simulate_work(millis: RangeInclusive<u64>) {
    tokio::time::sleep(Duration::from_millis(fastrand::u64(millis))).await;
}

fn is_nth(counter: &AtomicU64, n: u64) -> bool {
    counter.fetch_add(1, Ordering::Relaxed) % n == n - 1
}
