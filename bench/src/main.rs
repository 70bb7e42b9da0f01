//! Load tools: each prints what it measured. Reads arguments and nothing else; what is measured is in the modules.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "printing is what these tools are for"
)]

mod claim;
mod dispatch;
mod engine;
mod ground;
mod processor;
mod report;
mod sheet;
mod tenants;
mod usage;

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
    /// The claim: requests admitted per second, and what each costs the database.
    Claim(claim::Options),
    /// Dispatch: starts per second beside a bare client, and how soon a request is dispatched.
    Dispatch(dispatch::Options),
    /// Many tenants: a noisy neighbour, what limits cost, how many workspaces there may be.
    Tenants(tenants::Options),
}

#[tokio::main]
async fn main() -> Result<()> {
    match Arguments::parse().bench {
        Bench::Claim(options) => claim::run(options).await,
        Bench::Dispatch(options) => dispatch::run(options).await,
        Bench::Tenants(options) => tenants::run(options).await,
    }
}
