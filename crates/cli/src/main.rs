//! The `leasehold` binary: parses the command line and wires the crates together. The only crate that knows all others.

mod address;
mod admin_key;
mod arguments;
mod client_command;
mod config;
mod crash;
mod data_dir;
mod demo;
mod doctor;
mod engine;
mod engine_mismatch;
mod greeting;
mod local_socket;
mod migrate;
mod notify;
mod pages;
mod print;
#[cfg(test)]
mod reference;
mod serve;
mod settings;
mod settings_flags;
mod store;
mod telemetry;
mod worker;

use arguments::{Arguments, Command};
use clap::Parser;
use leasehold_console::Failure;
use leasehold_process::logging;
use std::process::ExitCode;

fn main() -> ExitCode {
    let command = match Arguments::try_parse() {
        Ok(arguments) => arguments.command,
        Err(error) => return arguments::handle_parse_error(&error),
    };
    let outcome = match command {
        Command::Serve(serve) => serve.run(),
        Command::Worker(worker) => worker.run(),
        Command::Demo(demo) => demo.run(),
        Command::Client(command) => client_command::run(*command),
        Command::Config(config) => config.run(),
        Command::Doctor(doctor) => doctor.run(),
        Command::Migrate(migrate) => migrate.run(),
        Command::AdminKey(command) => command.run(),
        Command::Completions(completions) => completions.run(),
        Command::Man(man) => man.run(),
    };
    logging::finish();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            arguments::print_error(&format!("{error:#}"));
            let failure = error.downcast_ref::<Failure>();
            failure.map_or(ExitCode::FAILURE, |failure| failure.exit.code().into())
        }
    }
}
