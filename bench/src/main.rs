//! Load tools: each subcommand measures and prints results. Parses arguments only; the modules measure.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these tools print their results"
)]

mod api;
mod backend;
mod claim;
mod compare;
mod cpu;
mod dispatch;
mod engine;
mod printer;
mod report;
mod telemetry;
mod tenants;
mod usage;
mod workqueue;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Measure rates, latencies and costs of Leasehold on temporary databases
#[derive(Parser)]
#[command(name = "leasehold-bench", version)]
struct Arguments {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// Measure the HTTP API: enqueue rates compared with direct store calls, and latency under open-loop load
    Api(api::Options),
    /// Measure the claim: admissions per second and their cost in the database
    Claim(claim::Options),
    /// Measure dispatch: starts per second compared with a bare engine client, and the latency to DISPATCHED
    Dispatch(dispatch::Options),
    /// Measure many tenants: a noisy neighbour, the cost of limits, the number of workspaces
    Tenants(tenants::Options),
    /// Measure the overhead of telemetry: dispatch and jobs without it, with logs, and with logs, metrics and traces
    Telemetry(telemetry::Options),
    /// Measure the WorkQueue: enqueue, drain, latency, backlog, a pinned horizon
    Workqueue(workqueue::Options),
    /// Compare the WorkQueue with other job queues on the same PostgreSQL server (npm installs them into a temporary directory)
    Compare(compare::Options),
}

#[tokio::main]
async fn main() -> Result<()> {
    match Arguments::parse().bench {
        Bench::Api(options) => api::run(options).await,
        Bench::Claim(options) => claim::run(options).await,
        Bench::Dispatch(options) => dispatch::run(options).await,
        Bench::Tenants(options) => tenants::run(options).await,
        Bench::Telemetry(options) => telemetry::run(options).await,
        Bench::Workqueue(options) => workqueue::run(options).await,
        Bench::Compare(options) => compare::run(options).await,
    }
}
