//! docs/reference/cli.md is what `--help` says of every command, and whatever pages say of commands is true of them. Tests only.
#![allow(clippy::unwrap_used)]

use crate::arguments::Arguments;
use clap::{Command, CommandFactory};
use leasehold_testkit::assert_kept;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const HEAD: &str = "\
# CLI reference

What `--help` says of every command. A test keeps this page true. What the exit codes mean is [explained by themselves](exit-codes.md); a
[quick start](../quick-start.md) shows the commands at work.

Client commands find the server and its key by themselves in the folder where it runs, or in one below: `leasehold serve` leaves its address and the administrator's key in its data folder. From elsewhere,
`--server` or `LEASEHOLD_SERVER` says where it is, and `LEASEHOLD_KEY` holds the key. `LEASEHOLD_WORKSPACE` and `LEASEHOLD_OUTPUT` stand for `--workspace` and `--output`. With `-o json` a command prints one JSON document, lists one
array; `request watch`, `changes` and bulk work print one document a line. The flags that all client commands have are [at the end](#flags-of-every-client-command).
";
/// As wide as a page.
const WIDTH: usize = 120;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn built() -> Command {
    let mut command = Arguments::command().term_width(WIDTH);
    command.build();
    command
}

/// One command and those under it. Flags that all client commands have are shown once, by themselves.
fn write(command: &Command, path: &str, page: &mut String) {
    let alone = command.clone().mut_args(|flag| {
        let everywhere = flag.is_global_set();
        flag.hide(everywhere)
    });
    write_help(&alone, path, page);
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
fn the_reference_is_what_help_says() {
    let mut page = HEAD.to_owned();
    let root = built();
    write(&root, "leasehold", &mut page);
    let noun = root.find_subcommand("request").unwrap();
    let with_flags = noun.find_subcommand("get").unwrap();
    write_help(with_flags, "Flags of every client command", &mut page);
    assert_kept(&repository().join("docs/reference/cli.md"), &page);
}

/// Lines of pages that are commands of the program, with where they are.
fn commands_of_pages() -> Vec<(String, String)> {
    let mut pages = vec![repository().join("README.md")];
    let mut folders = vec![
        repository().join("docs"),
        repository().join("examples"),
        repository().join("packaging"),
    ];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
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
            let place = format!("{}:{}", page.display(), number + 1);
            found.extend(
                commands(line)
                    .into_iter()
                    .map(|command| (place.clone(), command)),
            );
        }
    }
    found
}

/// What a line says of the program: in a block, in backticks, or in `$(…)`.
fn commands(line: &str) -> Vec<String> {
    let pieces = line.split(['`', '(', '|', ';', '#']);
    let pieces = pieces
        .map(str::trim)
        // The log's line that it runs is no command.
        .filter(|piece| piece.starts_with("leasehold ") && *piece != "leasehold is running");
    pieces
        .map(|piece| piece.trim_end_matches(')').to_owned())
        .collect()
}

/// What is wrong with a command, if anything.
fn wrong(text: &str) -> Option<String> {
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
            // A place for any of them.
            None if !word.starts_with(|first: char| first.is_ascii_lowercase()) => return None,
            None => return Some(format!("`{}` has no command `{word}`", command.get_name())),
        }
    }
    None
}

#[test]
fn pages_name_commands_and_flags_that_exist() {
    let commands = commands_of_pages();
    assert!(commands.len() > 100, "only {} were found", commands.len());
    let wrong: Vec<String> = commands
        .iter()
        .filter_map(|(place, text)| Some(format!("{place}: {text}: {}", wrong(text)?)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_command_that_does_not_exist_is_noticed() {
    assert_eq!(wrong("leasehold request list --status failed"), None);
    assert!(wrong("leasehold request lst").is_some());
    assert!(wrong("leasehold request list --stauts failed").is_some());
    assert_eq!(
        commands("say `leasehold top` or id=$(leasehold key me)"),
        ["leasehold top", "leasehold key me"]
    );
}
