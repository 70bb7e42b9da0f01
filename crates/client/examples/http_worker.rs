//! A worker over HTTP: the same handlers as with a store, but with a server's address and a key instead of a database.
//!
//! `LEASEHOLD_KEY=… cargo run -p leasehold-client --example http_worker -- http://127.0.0.1:7777 emails`

use leasehold_client::{Client, HttpSource};
use leasehold_worker::{JobContext, JobError, Worker};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let log = tracing_subscriber::fmt().with_writer(std::io::stderr);
    log.init();
    let arguments: Vec<String> = std::env::args().collect();
    let [_, base_url, queue] = &arguments[..] else {
        anyhow::bail!("usage: http_worker SERVER_URL QUEUE");
    };
    let client = Client::new(base_url, &std::env::var("LEASEHOLD_KEY")?)?;
    let worker = Worker::builder(Arc::new(HttpSource::new(client)))
        .queue(queue)
        .concurrency(4)
        .lease(Duration::from_millis(number("LEASE_MS", 30_000.0) as u64))
        .handler("welcome", welcome)
        .build()?;
    let mut terminate = signal(SignalKind::terminate())?;
    // Drains: running handlers may finish, prefetched jobs are returned.
    let stop = async move {
        terminate.recv().await;
    };
    worker.run(stop).await;
    Ok(())
}

async fn welcome(payload: Value, job: JobContext) -> Result<Value, JobError> {
    tracing::info!("working on job {}", job.id());
    let work = Duration::from_secs_f64(number("WORK_SECONDS", 0.0));
    // If the lease is lost, the worker drops the handler here.
    tokio::time::sleep(work).await;
    Ok(json!({"payload": payload, "by": job.worker()}))
}

fn number(variable: &str, default: f64) -> f64 {
    let text = std::env::var(variable).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(default)
}
