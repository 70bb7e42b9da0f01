//! Enqueue and work in one file and one process: a worker on SQLite with typed handlers, a retry, a scheduled job and a clean stop.
//!
//! `cargo run -p leasehold-worker --example enqueue_and_work [FILE]`; without a file all is kept in memory.

#![allow(clippy::print_stdout, reason = "an example talks to people")]

use anyhow::{Context, Result};
use leasehold_core::JsonText;
use leasehold_runtime::StoreSource;
use leasehold_store::Store;
use leasehold_store::job::{Dedup, JobStart, NewJob};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use leasehold_worker::{JobContext, JobError, Worker};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

#[derive(Serialize, Deserialize)]
struct Welcome {
    to: String,
}

async fn welcome(letter: Welcome, job: JobContext) -> Result<String, JobError> {
    // The first attempt for bob fails; his job is tried again after 100 ms.
    if letter.to == "bob" && job.attempt() == 1 {
        let soon = Duration::from_millis(100);
        return Err(JobError::retry_after(soon, "the mail server is busy"));
    }
    println!(
        "welcome, {} (job {}, attempt {}, token {})",
        letter.to,
        job.id(),
        job.attempt(),
        job.token()
    );
    Ok(format!("sent to {}", letter.to))
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = SqliteOptions::default();
    let store: Arc<dyn Store> = Arc::new(match std::env::args().nth(1) {
        Some(file) => SqliteStore::open(file, &options)?,
        None => SqliteStore::open_in_memory(&options)?,
    });
    store.schema_migrate().await?;

    let (done, mut all_done) = mpsc::unbounded_channel();
    let worker = Worker::of(Arc::new(StoreSource::new(store.clone())))
        .queue("emails")
        .concurrency(4)
        .handler("welcome", welcome)
        // What a handler needs comes in by the closure; a closure that captures returns an async block.
        .handler("report", move |(): (), _: JobContext| {
            let done = done.clone();
            async move {
                println!("all welcome");
                done.send(())?;
                Ok(())
            }
        })
        .build()?
        .start();

    let mut jobs = Vec::new();
    for name in ["ada", "bob", "ada"] {
        let to = name.to_owned();
        let mut job = NewJob::new("emails", "welcome", JsonText::of(&Welcome { to })?);
        // Nobody is welcomed twice in an hour.
        job.dedup = Some(Dedup {
            key: name.to_owned(),
            window: Some(Duration::from_secs(3600)),
        });
        jobs.push(job);
    }
    let mut report = NewJob::new("emails", "report", JsonText::default());
    report.start = JobStart::In(Duration::from_millis(500));
    jobs.push(report);
    let enqueued = store.job_enqueue(&jobs).await?;
    println!("enqueued {enqueued:?}");

    all_done.recv().await.context("the worker is gone")?;
    let stats = worker.stop().await;
    println!(
        "{} jobs completed, {} tried again",
        stats.completed, stats.retried
    );
    Ok(())
}
