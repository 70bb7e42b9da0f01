//! The commands of this repository, `cargo xtask setup|test|package|tidy|schema|book`. Knows nothing of what the product does.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod book;
mod child;
mod install;
mod interrupt;
mod package;
mod schema;
mod setup;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Sets up, tests and keeps tidy this repository.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Installs what the tests need and is missing: PostgreSQL, faketime, Temporal's CLI and its SDK for Python, linters of packages.
    Setup,
    /// Sets up, then runs every test on throwaway servers and sums up.
    Test(test::TestArguments),
    /// Builds what a release ships into target/package: both programs, the chart, checksums, a bill of materials.
    Package,
    /// Checks the house rules that neither the compiler nor clippy knows.
    Tidy,
    /// Rewrites each store's schema.sql from its migrations, and PostgreSQL's list of functions.
    Schema,
    /// Checks every link of the documentation and builds the book into target/book.
    Book,
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all is well; an error is what kept a command from finding out.
fn run(task: Task) -> Result<bool> {
    match task {
        Task::Setup => setup::run().map(|_| true),
        Task::Test(arguments) => test::run(&arguments),
        Task::Package => package::run().map(|()| true),
        Task::Tidy => tidy::run(),
        Task::Schema => schema::run().map(|()| true),
        Task::Book => book::run(),
    }
}
