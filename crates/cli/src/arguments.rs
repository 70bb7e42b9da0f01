//! The command line: every command there is, and what is said of one that is not.

use crate::{admin_key, config, demo, doctor, migrate, pages, serve, worker};
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use leasehold_console::{Exit, clean};
use std::io::Write;
use std::process::ExitCode;

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 usage, 3 not found, 4 denied, 5 conflict, 6 unavailable, \
    7 the watched request failed, 8 in use, 9 schema. docs/reference/exit-codes.md explains them.";

/// The multi-tenant front door of a workflow engine.
#[derive(Parser)]
#[command(name = "leasehold", version, arg_required_else_help = true, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Serves the API, admits requests, starts their executions and follows them to their end.
    Serve(serve::Serve),
    /// Runs the graphs of a server whose engine is Temporal: takes their workflows from Temporal, and works for the server over HTTP.
    ///
    /// It needs a key of the server that opens the queues of its graphs' tasks: LEASEHOLD_KEY, or --key-file. Any number of workers can run, anywhere;
    /// what one leaves undone another goes on with.
    Worker(worker::WorkerCommand),
    /// Starts a server of its own with sample workspaces, workers and a load, and shows what goes on.
    ///
    /// Needs nothing else, and leaves nothing behind unless --data-dir says where.
    Demo(demo::DemoCommand),
    #[command(flatten)]
    Client(Box<leasehold_console::Command>),
    /// Checks settings, prints those in effect, or prints a file with all of them.
    Config(config::ConfigCommand),
    /// Examines settings, store, engine, locks and drift, and says what to do about what is wrong. Changes nothing.
    ///
    /// Where a running server owns the store, as on SQLite, that server is asked: the data folder says where it is. Ends with 1 if there is a problem,
    /// with 0 if there are only warnings.
    Doctor(Box<doctor::DoctorCommand>),
    /// Brings the store's schema up to date, or shows what that would do.
    Migrate(migrate::MigrateCommand),
    /// Makes another administrator's key and puts it in the data folder, for whoever lost theirs.
    ///
    /// On SQLite the server must be stopped for it.
    AdminKey(admin_key::MakeAdminKey),
    /// Prints a script that completes commands in a shell.
    Completions(pages::Completions),
    /// Prints the manual page, or writes those of all commands into a folder.
    Man(pages::Man),
}

/// Help and versions are printed as they are; what is wrong is said in one line.
pub(crate) fn refused(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // Nobody is left to be told if even this cannot be printed.
        let _ = error.print();
        let help = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
        return if help {
            Exit::Usage.code().into()
        } else {
            ExitCode::SUCCESS
        };
    }
    say_error(&line(&error.render().to_string(), &named()));
    Exit::Usage.code().into()
}

/// One line, with nothing in it that a terminal would obey; whoever closed standard error does not want it.
pub(crate) fn say_error(text: &str) {
    let _ = writeln!(std::io::stderr(), "error: {}", clean(text));
}

/// The command that was meant, as far as it can be told from the arguments.
fn named() -> String {
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

/// What is wrong, what may have been meant, and where to look.
fn line(rendered: &str, command: &str) -> String {
    let paragraphs: Vec<String> = rendered
        .split("\n\n")
        .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    let wrong = paragraphs.first().map(String::as_str).unwrap_or_default();
    let wrong = wrong.trim_start_matches("error: ").to_owned();
    let tips = paragraphs
        .iter()
        .filter_map(|text| text.strip_prefix("tip: "));
    let look = format!("`{command} --help` shows what there is");
    let parts = [wrong].into_iter().chain(tips.map(str::to_owned));
    parts.chain([look]).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn said(arguments: &[&str]) -> String {
        let words = ["leasehold"].iter().chain(arguments);
        let error = Arguments::try_parse_from(words).err().unwrap();
        let command = command_of(arguments.iter().copied());
        line(&error.render().to_string(), &command)
    }

    #[test]
    fn the_commands_are_put_together_as_clap_wants_it() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn what_is_wrong_is_one_line_that_says_where_to_look() {
        assert_eq!(
            said(&["serve", "--stoer", "x"]),
            "unexpected argument '--stoer' found; a similar argument exists: '--store'; `leasehold serve --help` shows what there is"
        );
        assert_eq!(
            said(&["request", "lst"]),
            "unrecognized subcommand 'lst'; a similar subcommand exists: 'list'; `leasehold request --help` shows what there is"
        );
        let missing = said(&["request", "enqueue"]);
        assert!(missing.starts_with("the following required arguments were not provided: <DEFINITION>; `leasehold request enqueue"), "{missing}");
        let number = said(&["workspace", "create", "a", "--limit", "many"]);
        assert!(
            number.starts_with("invalid value 'many' for '--limit <N>'"),
            "{number}"
        );
        assert!(
            number.ends_with("`leasehold workspace create --help` shows what there is"),
            "{number}"
        );
        assert_eq!(number.lines().count(), 1);
    }
}
