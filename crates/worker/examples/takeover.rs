//! Kills a worker and shows another one take over its jobs. Needs PostgreSQL, because only one process may open a SQLite file.
//!
//! `DATABASE_URL=postgres://… cargo run -p leasehold-worker --example takeover`. The program starts itself twice as a worker, kills the
//! first one with `kill -9` while it runs jobs, and waits until the second one has finished them.

#![allow(clippy::print_stdout, reason = "an example prints its output")]

use anyhow::{Context, Result, ensure};
use leasehold_core::{JobStatus, JsonText};
use leasehold_runtime::StoreSource;
use leasehold_store::Store;
use leasehold_store::job::NewJob;
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use leasehold_worker::{JobContext, Worker};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

const JOBS: usize = 5;
/// Short, because the jobs of a killed worker are free only after this time.
const LEASE: Duration = Duration::from_secs(2);

#[tokio::main]
async fn main() -> Result<()> {
    let url = std::env::var("DATABASE_URL").context("DATABASE_URL is not set")?;
    let store: Arc<dyn Store> = Arc::new(PostgresStore::new(&PostgresOptions::new(url))?);
    let mut arguments = std::env::args().skip(1);
    match (arguments.next(), arguments.next()) {
        (Some(role), Some(queue)) => work(store, &role, &queue).await,
        _ => run_example(store).await,
    }
}

/// Runs one of the two workers: the first never finishes a job, the second finishes each at once.
async fn work(store: Arc<dyn Store>, role: &str, queue: &str) -> Result<()> {
    let is_first = role == "first";
    let name = role.to_owned();
    let worker = Worker::builder(Arc::new(StoreSource::new(store)))
        .queue(queue)
        .lease(LEASE)
        // `leasehold serve` requeues jobs with expired leases and notifies workers; without a server the worker polls.
        .poll_interval(Duration::from_millis(250))
        .handler("work", move |number: usize, job: JobContext| {
            println!(
                "{name}: job {number}, attempt {}, token {}",
                job.attempt(),
                job.token()
            );
            async move {
                if is_first {
                    std::future::pending::<()>().await;
                }
                Ok(())
            }
        })
        .build()?;
    worker.run(std::future::pending()).await;
    Ok(())
}

async fn run_example(store: Arc<dyn Store>) -> Result<()> {
    store.schema_migrate().await?;
    let queue = format!("takeover-{}", std::process::id());
    let new = |number| Ok(NewJob::new(&queue, "work", JsonText::of(&number)?));
    let jobs = (0..JOBS).map(new).collect::<Result<Vec<_>>>()?;
    let enqueued = store.job_enqueue(&jobs).await?;

    let (mut first, mut lines) = start("first", &queue)?;
    for _ in 0..JOBS {
        println!("{}", lines.next_line().await?.context("the worker exited")?);
    }
    first.kill().await?;
    let killed = Instant::now();
    println!("killed the first worker while it ran {JOBS} jobs");

    let (mut second, mut lines) = start("second", &queue)?;
    for _ in 0..JOBS {
        println!("{}", lines.next_line().await?.context("the worker exited")?);
    }
    println!("taken over {:?} after the kill", killed.elapsed());

    for job in enqueued {
        loop {
            let job = store
                .job_get(job.id)
                .await?
                .context("the job was not found")?;
            if job.status == JobStatus::Completed {
                ensure!(job.attempts == 2, "{} attempts", job.attempts);
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    second.kill().await?;
    println!("all {JOBS} jobs are completed");
    Ok(())
}

/// Starts this program as a worker.
fn start(role: &str, queue: &str) -> Result<(Child, Lines<BufReader<ChildStdout>>)> {
    let mut child = Command::new(std::env::current_exe()?)
        .args([role, queue])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let output = child
        .stdout
        .take()
        .context("the worker has no standard output")?;
    Ok((child, BufReader::new(output).lines()))
}
