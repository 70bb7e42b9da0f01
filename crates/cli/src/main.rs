//! The binary: reads its arguments and composes everything. The only place that knows all rooms.
#![allow(clippy::print_stderr)]

mod engine;
mod logging;
mod serve;
mod settings;
mod store;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// The multi-tenant front door of a workflow engine.
#[derive(Parser)]
#[command(name = "leasehold", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Admits requests, starts their executions in Temporal and follows them to their end.
    Serve(serve::Serve),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Serve(serve) => serve.run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
