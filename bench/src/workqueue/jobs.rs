//! The measured jobs and how they are enqueued. Knows no database.

use anyhow::{Result, ensure};
use leasehold_core::JsonText;
use leasehold_store::Store;
use leasehold_store::job::NewJob;
use serde::Deserialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) const QUEUE: &str = "bench";
pub(crate) const KIND: &str = "noop";

/// The payload of a job.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Payload {
    /// A number, or the scheduled enqueue time in microseconds.
    pub(crate) at: u64,
}

/// About 100 bytes of JSON.
pub(crate) fn payload(at: u64) -> String {
    format!(
        r#"{{"at":{at},"note":"a job that does nothing but is as long as an ordinary small one: 0123456789"}}"#
    )
}

pub(crate) fn job(at: u64) -> NewJob {
    NewJob::new(QUEUE, KIND, JsonText::trusted(payload(at)))
}

/// Enqueues one job per call, from this many concurrent callers.
pub(crate) async fn one_by_one(store: &Arc<dyn Store>, jobs: u32, callers: u32) -> Result<()> {
    let next = Arc::new(AtomicU32::new(0));
    let callers = (0..callers).map(|_| {
        let (store, next) = (store.clone(), next.clone());
        tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= jobs {
                    return anyhow::Ok(());
                }
                store.job_enqueue(&[job(u64::from(number))]).await?;
            }
        })
    });
    for caller in futures::future::join_all(callers).await {
        caller??;
    }
    Ok(())
}

/// Enqueues `batch` jobs per call, sequentially.
pub(crate) async fn in_bulk(store: &dyn Store, jobs: u32, batch: u32) -> Result<()> {
    let mut number = 0;
    while number < jobs {
        let end = jobs.min(number + batch);
        let some: Vec<NewJob> = (number..end).map(|number| job(u64::from(number))).collect();
        let enqueued = store.job_enqueue(&some).await?;
        ensure!(
            enqueued.len() == some.len(),
            "the store did not enqueue all jobs"
        );
        number = end;
    }
    Ok(())
}
