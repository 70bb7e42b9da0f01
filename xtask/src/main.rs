//! The developer commands: `cargo xtask setup|test|package|tidy|schema|book`. Knows nothing of the product.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod book;
mod child;
mod install;
mod interrupt;
mod npm;
mod package;
mod schema;
mod setup;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

use setup::PostgresVersions;

/// Set up, test and check this repository.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install missing test dependencies: PostgreSQL of two versions, PgBouncer, faketime, Temporal's CLI and Python SDK, linters.
    Setup(SetupArguments),
    /// Set up, run every test on throwaway servers, and print a summary.
    Test(test::TestArguments),
    /// Build the release artifacts into target/package: both programs, the chart, checksums, an SBOM.
    Package(package::PackageArguments),
    /// Check the project rules that neither the compiler nor clippy checks.
    Tidy,
    /// Rewrite each store's schema.sql from its migrations, and PostgreSQL's list of functions.
    Schema,
    /// Check every link of the documentation and build the book into target/book.
    Book,
}

#[derive(Args)]
struct SetupArguments {
    /// Also install what only `test --full` needs: every supported PostgreSQL version.
    #[arg(long)]
    full: bool,
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

/// Returns whether the command succeeded; an error means that it could not run.
fn run(task: Task) -> Result<bool> {
    match task {
        Task::Setup(arguments) => {
            let versions = match arguments.full {
                true => PostgresVersions::All,
                false => PostgresVersions::Newest,
            };
            setup::run(versions).map(|_| true)
        }
        Task::Test(arguments) => test::run(&arguments),
        Task::Package(arguments) => package::run(&arguments).map(|()| true),
        Task::Tidy => tidy::run(),
        Task::Schema => schema::run().map(|()| true),
        Task::Book => book::run(),
    }
}
