//! Load tools: each prints what it measured. Reads arguments and nothing else; what is measured is in the modules.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "printing is what these tools are for"
)]

mod api;
mod backend;
mod claim;
mod compare;
mod dispatch;
mod engine;
mod processor;
mod report;
mod sheet;
mod tenants;
mod usage;
mod watched;
mod workqueue;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Rates and costs of Leasehold, measured on throwaway databases.
#[derive(Parser)]
#[command(name = "leasehold-bench", version)]
struct Arguments {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// The HTTP API: enqueueing over HTTP beside the store itself, and the delays under open load.
    Api(api::Options),
    /// The claim: requests admitted per second, and what each costs the database.
    Claim(claim::Options),
    /// Dispatch: starts per second beside a bare client, and how soon a request is dispatched.
    Dispatch(dispatch::Options),
    /// Many tenants: a noisy neighbour, what limits cost, how many workspaces there may be.
    Tenants(tenants::Options),
    /// What it costs to be watched: dispatch and jobs with nobody looking, and with logs, metrics and traces.
    Watched(watched::Options),
    /// The WorkQueue: enqueueing, draining, latency, backlog, a pinned horizon.
    Workqueue(workqueue::Options),
    /// The WorkQueue beside other job queues on the same server; npm installs them into a folder that goes away again.
    Compare(compare::Options),
}

#[tokio::main]
async fn main() -> Result<()> {
    match Arguments::parse().bench {
        Bench::Api(options) => api::run(options).await,
        Bench::Claim(options) => claim::run(options).await,
        Bench::Dispatch(options) => dispatch::run(options).await,
        Bench::Tenants(options) => tenants::run(options).await,
        Bench::Watched(options) => watched::run(options).await,
        Bench::Workqueue(options) => workqueue::run(options).await,
        Bench::Compare(options) => compare::run(options).await,
    }
}
