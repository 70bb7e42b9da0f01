//! Enqueues and runs jobs in one process: a worker on SQLite with typed handlers, a retry, a scheduled job and a graceful shutdown.
//!
//! `cargo run -p leasehold-worker --example enqueue_and_work [FILE]`; without a file the store is in memory.

#![allow(clippy::print_stdout, reason = "an example prints its output")]

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
    // The first attempt for bob fails; the job is retried after 100 ms.
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
    let worker = Worker::builder(Arc::new(StoreSource::new(store.clone())))
        .queue("emails")
        .concurrency(4)
        .handler("welcome", welcome)
        // A closure passes dependencies to the handler; a closure that captures returns an async block.
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
        // At most one welcome per person and hour.
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

    all_done.recv().await.context("the worker has stopped")?;
    let stats = worker.stop().await;
    println!(
        "{} jobs completed, {} retried",
        stats.completed, stats.retried
    );
    Ok(())
}
