//! Tests: docs/reference/cli.md equals the output of `--help`, and every command on a documentation page exists.
#![allow(clippy::unwrap_used)]

use crate::arguments::Arguments;
use clap::{Command, CommandFactory};
use leasehold_testkit::assert_snapshot_file;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const HEAD: &str = "\
# CLI reference

The `--help` text of every command, checked by a test. See also the [exit codes](exit-codes.md) and the [quick start](../quick-start.md).

Client commands reach the server over the socket in its data directory, with the administrator key there. A command looks for `leasehold-data` in the current directory and its parents. Elsewhere, or for another key,
set `--server` or `LEASEHOLD_SERVER` to the URL and `LEASEHOLD_KEY` to the key: a key goes only to an address that is passed with it ([details](../operations/security.md#how-commands-reach-a-server)). `LEASEHOLD_WORKSPACE` and `LEASEHOLD_OUTPUT` replace `--workspace` and `--output`. With `-o json` a command prints one JSON document and a list one
array; `request watch`, `changes` and bulk commands print one document per line. The flags of all client commands are [at the end](#flags-of-every-client-command).
";
/// Width of the help text on the page.
const WIDTH: usize = 120;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn built() -> Command {
    let mut command = Arguments::command().term_width(WIDTH);
    command.build();
    command
}

/// Writes a command and its subcommands. Hides the flags of all client commands, which have a section of their own.
fn write(command: &Command, path: &str, page: &mut String) {
    let without_globals = command.clone().mut_args(|flag| {
        let is_global = flag.is_global_set();
        flag.hide(is_global)
    });
    write_help(&without_globals, path, page);
    for inner in command
        .get_subcommands()
        .filter(|inner| inner.get_name() != "help")
    {
        write(inner, &format!("{path} {}", inner.get_name()), page);
    }
}

fn write_help(command: &Command, heading: &str, page: &mut String) {
    let mut command = command.clone();
    if let Some(long) = command.get_long_about().cloned() {
        command = command.about(long);
    }
    let help = command.render_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    writeln!(
        page,
        "\n## {heading}\n\n```text\n{}\n```",
        lines.join("\n").trim_end()
    )
    .unwrap();
}

#[test]
fn reference_page_equals_help() {
    let mut page = HEAD.to_owned();
    let root = built();
    write(&root, "leasehold", &mut page);
    let request = root.find_subcommand("request").unwrap();
    let with_flags = request.find_subcommand("get").unwrap();
    write_help(with_flags, "Flags of every client command", &mut page);
    assert_snapshot_file(&repository().join("docs/reference/cli.md"), &page);
}

/// The commands on documentation pages, with their location.
fn commands_of_pages() -> Vec<(String, String)> {
    let mut pages = vec![repository().join("README.md")];
    let mut dirs = vec![
        repository().join("docs"),
        repository().join("examples"),
        repository().join("packaging"),
    ];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                pages.push(path);
            }
        }
    }
    let mut found = Vec::new();
    for page in pages
        .iter()
        .filter(|page| !page.ends_with("reference/cli.md"))
    {
        let text = std::fs::read_to_string(page).unwrap();
        for (number, line) in text.lines().enumerate() {
            let location = format!("{}:{}", page.display(), number + 1);
            found.extend(
                commands(line)
                    .into_iter()
                    .map(|command| (location.clone(), command)),
            );
        }
    }
    found
}

/// The commands on a line: in a code block, in backticks, or in `$(…)`.
fn commands(line: &str) -> Vec<String> {
    let pieces = line.split(['`', '(', '|', ';', '#']);
    let pieces = pieces
        .map(str::trim)
        // The log message is not a command.
        .filter(|piece| piece.starts_with("leasehold ") && *piece != "leasehold is running");
    pieces
        .map(|piece| piece.trim_end_matches(')').to_owned())
        .collect()
}

/// The problem of a command, if any.
fn command_problem(text: &str) -> Option<String> {
    let root = built();
    let mut command = &root;
    for word in text.split_whitespace().skip(1) {
        if word == "--" {
            return None;
        }
        if let Some(flag) = word.strip_prefix("--") {
            let flag = flag.split(['=', ',', '.', ':']).next().unwrap();
            let known = command
                .get_arguments()
                .any(|known| known.get_long() == Some(flag) || flag == "help" || flag == "version");
            if !known {
                return Some(format!("`{}` has no flag --{flag}", command.get_name()));
            }
            continue;
        }
        if !command.has_subcommands() {
            continue;
        }
        match command.find_subcommand(word.trim_end_matches([',', '.', ':'])) {
            Some(inner) => command = inner,
            // A placeholder.
            None if !word.starts_with(|first: char| first.is_ascii_lowercase()) => return None,
            None => return Some(format!("`{}` has no command `{word}`", command.get_name())),
        }
    }
    None
}

#[test]
fn pages_name_commands_and_flags_that_exist() {
    let commands = commands_of_pages();
    assert!(commands.len() > 100, "found only {}", commands.len());
    let wrong: Vec<String> = commands
        .iter()
        .filter_map(|(location, text)| {
            Some(format!("{location}: {text}: {}", command_problem(text)?))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn unknown_commands_and_flags_are_found() {
    assert_eq!(
        command_problem("leasehold request list --status failed"),
        None
    );
    assert!(command_problem("leasehold request lst").is_some());
    assert!(command_problem("leasehold request list --stauts failed").is_some());
    assert_eq!(
        commands("run `leasehold top` or id=$(leasehold key me)"),
        ["leasehold top", "leasehold key me"]
    );
}
