//! The commands of the README, of the quick start and of the examples, run line by line as a reader would, in a folder that looks like a fresh clone.

use crate::PATIENCE;
use crate::cli_env::program;
use leasehold_testkit::{Process, TempDir, temp_dir};
use std::path::{Path, PathBuf};
use std::process::Command;

/// How readers start the program before it is on their path.
const FROM_SOURCE: &str = "cargo run --release --";
/// Where pages say that it listens; a test takes a port that is free.
const USUAL: &str = "127.0.0.1:7777";

/// A block of commands, and how it is to be run.
#[derive(Debug, PartialEq)]
struct Block {
    how: String,
    text: String,
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// The blocks of a page that are commands.
fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    for line in page.lines() {
        match line.strip_prefix("```") {
            Some(info) if !open => {
                open = true;
                let how = if info.starts_with("sh") {
                    info
                } else {
                    "other"
                };
                blocks.push(Block {
                    how: how.to_owned(),
                    text: String::new(),
                });
            }
            Some(_) => open = false,
            None if open => {
                let block = blocks.last_mut().unwrap();
                block.text.push_str(line);
                block.text.push('\n');
            }
            None => {}
        }
    }
    blocks.retain(|block| block.how != "other");
    blocks
}

/// A folder with what commands refer to.
fn clone() -> TempDir {
    let folder = temp_dir();
    let examples = repository().join("examples");
    std::os::unix::fs::symlink(examples, folder.path().join("examples")).unwrap();
    folder
}

/// Starts the server that the first block starts; says where it listens.
fn serve(folder: &Path, block: &Block) -> (Process, String) {
    let command = block
        .text
        .lines()
        .find(|line| line.contains(FROM_SOURCE))
        .unwrap();
    let (before, after) = command.split_once(FROM_SOURCE).unwrap();
    let arguments: Vec<&str> = after
        .split('#')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    let mut command = program(folder, &arguments);
    for variable in before.split_whitespace() {
        let (name, value) = variable.split_once('=').unwrap();
        command.env(name, value);
    }
    command.env("LEASEHOLD__SERVER__LISTEN", "127.0.0.1:0");
    let serve = Process::spawn(command);
    serve.wait_for_line(PATIENCE, |line| line.contains("leasehold is running"));
    let address = std::fs::read_to_string(folder.join("leasehold-data/address")).unwrap();
    let address = address.trim().trim_start_matches("http://").to_owned();
    (serve, address)
}

/// Runs every block of a page in one shell, as a reader would; returns what was printed.
fn follow(page: &str) -> String {
    let folder = clone();
    let page = std::fs::read_to_string(repository().join(page)).unwrap();
    let mut server: Option<(Process, String)> = None;
    // A second server in the same folder takes the first one's place.
    let mut said = String::new();
    let mut script = String::new();
    for block in blocks(&page) {
        match block.how.as_str() {
            "sh serve" => {
                if let Some((mut process, address)) = server.take() {
                    said.push_str(&shell(folder.path(), &script, &address));
                    script.clear();
                    end(&mut process);
                }
                server = Some(serve(folder.path(), &block));
            }
            "sh background" => {
                script.push_str(&format!("( {} ) &\n", block.text.trim()));
            }
            "sh" => script.push_str(&block.text),
            "sh norun" => {}
            other => panic!("nobody knows how to run a block `{other}`"),
        }
    }
    let (mut process, address) = server.unwrap();
    said.push_str(&shell(folder.path(), &script, &address));
    end(&mut process);
    said
}

fn end(serve: &mut Process) {
    serve.terminate();
    assert!(serve.wait(PATIENCE).success(), "{}", serve.log());
}

fn shell(folder: &Path, script: &str, address: &str) -> String {
    let script = script.replace(USUAL, address);
    let program = Path::new(env!("CARGO_BIN_EXE_leasehold")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let output = Command::new("bash")
        .args([
            "-c",
            &format!("set -eu\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\nset -x\n{script}"),
        ])
        .current_dir(folder)
        .env_clear()
        .env("PATH", format!("{}:{path}", program.display()))
        .output()
        .unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
    out.into_owned()
}

#[test]
fn the_tour_of_the_readme_works_line_by_line() {
    let said = follow("README.md");
    // The one of four commands, and the one with a worker.
    assert_eq!(said.matches("COMPLETED  after").count(), 2, "{said}");
}

#[test]
fn the_first_workflow_of_the_readme_takes_four_commands() {
    let page = std::fs::read_to_string(repository().join("README.md")).unwrap();
    let blocks = blocks(&page);
    let first = blocks
        .iter()
        .find(|block| block.text.contains("request watch"))
        .unwrap();
    let commands = first.text.split("\nEOT\n").flat_map(|part| {
        // What a file is made of is no command.
        if part.contains("<<") {
            part.lines().take(1).collect::<Vec<_>>()
        } else {
            part.lines().collect()
        }
    });
    let commands: Vec<&str> = commands.collect();
    assert_eq!(commands.len(), 4, "{commands:#?}");
}

#[test]
fn the_quick_start_works_line_by_line() {
    let said = follow("docs/quick-start.md");
    for part in ["refused with exit code 2", "ended with exit code 7"] {
        assert!(said.contains(part), "{part}\n{said}");
    }
}

#[test]
fn the_examples_work_line_by_line() {
    follow("examples/README.md");
}
