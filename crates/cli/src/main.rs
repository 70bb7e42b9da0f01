//! The binary: reads its arguments and composes everything. The only place that knows all rooms.
#![allow(clippy::print_stderr)]

mod admin_key;
mod data_folder;
mod engine;
mod greeting;
mod logging;
mod other_engine;
mod place;
mod serve;
mod settings;
mod signals;
mod store;
mod worker;

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
    /// Serves the API, admits requests, starts their executions and follows them to their end.
    Serve(serve::Serve),
    /// Runs the graphs of a server whose engine is Temporal: takes their workflows from Temporal, and works for the server over HTTP.
    ///
    /// It needs a key of the server that opens the queues of its graphs' tasks: LEASEHOLD_KEY, or --key-file. Any number of workers can run, anywhere;
    /// what one leaves undone another goes on with.
    Worker(worker::WorkerCommand),
    /// Makes another administrator's key and puts it in the data folder, for whoever lost theirs.
    ///
    /// On SQLite the server must be stopped for it.
    AdminKey(admin_key::MakeAdminKey),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Serve(serve) => serve.run(),
        Command::Worker(worker) => worker.run(),
        Command::AdminKey(make) => make.run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
