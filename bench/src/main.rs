//! Load tools: each prints what it measured. Reads arguments and nothing else; what is measured is in the modules.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "printing is what these tools are for"
)]

mod claim;
mod report;

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
}

#[tokio::main]
async fn main() -> Result<()> {
    match Arguments::parse().bench {
        Bench::Claim(options) => claim::run(options).await,
    }
}
