//! The command line: every command, and the error line for an invalid one.

use crate::{admin_key, config, demo, doctor, migrate, pages, serve, worker};
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use leasehold_console::{Exit, clean};
use std::io::Write;
use std::process::ExitCode;

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 usage, 3 not found, 4 denied, 5 conflict, 6 unavailable, \
    7 the watched request failed, 8 in use, 9 schema. See docs/reference/exit-codes.md.";

/// Multi-tenant admission control and job queue for workflows.
#[derive(Parser)]
#[command(name = "leasehold", version, arg_required_else_help = true, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run the server: the HTTP API, admission, dispatch and job queues.
    Serve(serve::ServeCommand),
    /// Run a Temporal worker that executes graphs for a server with the Temporal engine.
    ///
    /// Needs the server's address (--server) and an API key with access to the queues of the graphs' tasks (LEASEHOLD_KEY or --key-file). Run any number of workers on any machine; if one
    /// stops, another continues its work.
    Worker(worker::WorkerCommand),
    /// Run a demo: a server with sample workspaces, workers and load, shown live.
    ///
    /// Needs no other process. Removes its data at the end unless --data-dir is set.
    Demo(demo::DemoCommand),
    #[command(flatten)]
    Client(Box<leasehold_console::Command>),
    /// Check settings, print the effective settings, or print an example file.
    Config(config::ConfigCommand),
    /// Check settings, store, engine, locks and drift, and suggest fixes; read-only.
    ///
    /// If a running server owns the store, as on SQLite, the command asks that server over the socket in the data directory. Exits with 1 if there is
    /// a problem, with 0 if there are only warnings.
    Doctor(Box<doctor::DoctorCommand>),
    /// Migrate the store's schema, or show pending migrations.
    Migrate(migrate::MigrateCommand),
    /// Create a new administrator key in the data directory (if the old one was lost).
    ///
    /// With SQLite, stop the server first.
    AdminKey(admin_key::AdminKeyCommand),
    /// Print a shell completion script.
    Completions(pages::Completions),
    /// Print the manual page, or write the pages of all commands to a directory.
    Man(pages::Man),
}

/// Prints help and version unchanged, and errors on one line.
pub(crate) fn handle_parse_error(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // A closed output stream is not a failure.
        let _ = error.print();
        let help = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
        return if help {
            Exit::Usage.code().into()
        } else {
            ExitCode::SUCCESS
        };
    }
    print_error(&one_line(&error.render().to_string(), &requested_command()));
    Exit::Usage.code().into()
}

/// Prints an error on one line without control characters; ignores a closed standard error.
pub(crate) fn print_error(text: &str) {
    let _ = writeln!(std::io::stderr(), "error: {}", clean(text));
}

/// The command named by the arguments, as far as they are valid.
fn requested_command() -> String {
    let words = std::env::args().skip(1);
    command_of(words.collect::<Vec<_>>().iter().map(String::as_str))
}

fn command_of<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let root = Arguments::command();
    let (mut command, mut path) = (&root, root.get_name().to_owned());
    for word in words {
        let Some(inner) = command.find_subcommand(word) else {
            break;
        };
        path = format!("{path} {}", inner.get_name());
        command = inner;
    }
    path
}

/// Joins clap's message, its suggestions and a hint into one line.
fn one_line(rendered: &str, command: &str) -> String {
    let paragraphs: Vec<String> = rendered
        .split("\n\n")
        .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    let message = paragraphs.first().map(String::as_str).unwrap_or_default();
    let message = message.trim_start_matches("error: ").to_owned();
    let tips = paragraphs
        .iter()
        .filter_map(|text| text.strip_prefix("tip: "));
    let hint = format!("see `{command} --help`");
    let parts = [message].into_iter().chain(tips.map(str::to_owned));
    parts.chain([hint]).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn error_line(arguments: &[&str]) -> String {
        let words = ["leasehold"].iter().chain(arguments);
        let error = Arguments::try_parse_from(words).err().unwrap();
        let command = command_of(arguments.iter().copied());
        one_line(&error.render().to_string(), &command)
    }

    #[test]
    fn clap_definition_is_valid() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn parse_errors_are_one_line_with_a_hint() {
        assert_eq!(
            error_line(&["serve", "--stoer", "x"]),
            "unexpected argument '--stoer' found; a similar argument exists: '--store'; see `leasehold serve --help`"
        );
        assert_eq!(
            error_line(&["request", "lst"]),
            "unrecognized subcommand 'lst'; a similar subcommand exists: 'list'; see `leasehold request --help`"
        );
        let missing = error_line(&["request", "enqueue"]);
        assert!(missing.starts_with("the following required arguments were not provided: <DEFINITION>; see `leasehold request enqueue"), "{missing}");
        let number = error_line(&["workspace", "create", "a", "--limit", "many"]);
        assert!(
            number.starts_with("invalid value 'many' for '--limit <N>'"),
            "{number}"
        );
        assert!(
            number.ends_with("see `leasehold workspace create --help`"),
            "{number}"
        );
        assert_eq!(number.lines().count(), 1);
    }
}
