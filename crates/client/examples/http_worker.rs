//! A worker over HTTP: the same handlers as beside a store, with a server's address and a key instead of a database.
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
        anyhow::bail!("say the server's address and a queue");
    };
    let client = Client::new(base_url, &std::env::var("LEASEHOLD_KEY")?)?;
    let worker = Worker::of(Arc::new(HttpSource::new(client)))
        .queue(queue)
        .concurrency(4)
        .lease(Duration::from_millis(number("LEASE_MS", 30_000.0) as u64))
        .handler("welcome", welcome)
        .build()?;
    let mut told_to_end = signal(SignalKind::terminate())?;
    // Drains: what runs may finish, what was not started is given back.
    let stop = async move {
        told_to_end.recv().await;
    };
    worker.run(stop).await;
    Ok(())
}

async fn welcome(payload: Value, job: JobContext) -> Result<Value, JobError> {
    let pretended = Duration::from_secs_f64(number("WORK_SECONDS", 0.0));
    // Dropped right here if the lease is lost.
    tokio::time::sleep(pretended).await;
    Ok(json!({"payload": payload, "by": job.worker()}))
}

fn number(variable: &str, usual: f64) -> f64 {
    let text = std::env::var(variable).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(usual)
}
