//! The workers of the demo: they take their time, and now and then something goes wrong. Over HTTP, as anybody's.

use leasehold_client::{Client, HttpSource};
use leasehold_worker::{JobContext, JobError, Worker, WorkerHandle};
use serde_json::{Value, json};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Jobs of one worker at once: more than the slots of all workspaces together need.
const CONCURRENCY: usize = 48;
/// Whoever ends a demo wants it to end.
const DRAIN: Duration = Duration::from_secs(2);
/// Every so many charges the bank does not answer at first; the next attempt is well.
const BANK_AWAY: u64 = 12;
/// Every so many files cannot be read, and there is no second attempt: a dead letter.
const FILE_SPOILED: u64 = 6;

pub(super) struct Hands(Vec<WorkerHandle>);

impl Hands {
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
    let worker = Worker::of(source)
        .concurrency(CONCURRENCY)
        .drain_timeout(DRAIN);
    queues
        .iter()
        .fold(worker, |worker, queue| worker.queue(*queue))
}

/// Orders.
fn shop(client: &Client) -> Result<Worker, leasehold_worker::BuildError> {
    let charges = Arc::new(AtomicU64::new(0));
    worker(client, &["payments", "warehouse"])
        .handler("charge", move |_: Value, job: JobContext| {
            let away = job.attempt() == 1 && is_every(&charges, BANK_AWAY);
            async move {
                busy(150..=600).await;
                if away {
                    return Err(JobError::new("the bank did not answer"));
                }
                Ok(json!({"receipt": job.id()}))
            }
        })
        .handler("reserve", |_: Value, _: JobContext| {
            does(50..=250, "reserved")
        })
        .handler("ship", |_: Value, _: JobContext| does(100..=800, "shipped"))
        .build()
}

/// Everything else.
fn office(client: &Client) -> Result<Worker, leasehold_worker::BuildError> {
    let checks = Arc::new(AtomicU64::new(0));
    worker(client, &["reports", "imports", "postcards"])
        .handler("collect", |_: Value, _: JobContext| {
            does(100..=300, "collected")
        })
        .handler("count", |_: Value, _: JobContext| {
            does(200..=800, "counted")
        })
        .handler("bind", |_: Value, _: JobContext| does(100..=300, "bound"))
        .handler("fetch", |_: Value, _: JobContext| {
            does(100..=500, "fetched")
        })
        .handler("check", move |_: Value, _: JobContext| {
            let spoiled = is_every(&checks, FILE_SPOILED);
            async move {
                busy(100..=400).await;
                if spoiled {
                    return Err(JobError::permanent("the file ends in the middle of a row"));
                }
                Ok("checked")
            }
        })
        .handler("write", |_: Value, _: JobContext| {
            does(150..=500, "written")
        })
        .handler("post", |_: Value, _: JobContext| does(100..=300, "posted"))
        .build()
}

async fn does(millis: RangeInclusive<u64>, what: &'static str) -> Result<&'static str, JobError> {
    busy(millis).await;
    Ok(what)
}

/// As if there were something to do.
async fn busy(millis: RangeInclusive<u64>) {
    tokio::time::sleep(Duration::from_millis(fastrand::u64(millis))).await;
}

fn is_every(counter: &AtomicU64, so_many: u64) -> bool {
    counter.fetch_add(1, Ordering::Relaxed) % so_many == so_many - 1
}
