//! The binary: reads its arguments and composes everything. The only place that knows all rooms.

mod address;
mod admin_key;
mod arguments;
mod client_command;
mod config;
mod data_folder;
mod demo;
mod doctor;
mod engine;
mod greeting;
mod migrate;
mod notify;
mod other_engine;
mod pages;
mod place;
mod print;
#[cfg(test)]
mod reference;
mod serve;
mod settings;
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
        Err(error) => return arguments::refused(&error),
    };
    let outcome = match command {
        Command::Serve(serve) => serve.run(),
        Command::Worker(worker) => worker.run(),
        Command::Demo(demo) => demo.run(),
        Command::Client(command) => client_command::run(*command),
        Command::Config(config) => config.run(),
        Command::Doctor(doctor) => doctor.run(),
        Command::Migrate(migrate) => migrate.run(),
        Command::AdminKey(make) => make.run(),
        Command::Completions(completions) => completions.run(),
        Command::Man(man) => man.run(),
    };
    logging::finish();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            arguments::say_error(&format!("{error:#}"));
            let failure = error.downcast_ref::<Failure>();
            failure.map_or(ExitCode::FAILURE, |failure| failure.exit.code().into())
        }
    }
}
